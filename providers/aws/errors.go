package aws

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"poolkeeper/providers"
)

// The codes by which the services say what a daemon needs to know. Those that end as others of
// their kind are not listed.
var (
	// capacityCodes are those of a zone that has no such machine at the moment.
	capacityCodes = []string{
		"InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientCapacity", "InsufficientReservedInstanceCapacity",
		"InsufficientCapacityOnHost", "InsufficientFreeAddressesInSubnet", "InsufficientVolumeCapacity", "UnfulfillableCapacity", "SpotMaxPriceTooLow",
	}
	quotaCodes = []string{
		"InstanceLimitExceeded", "VcpuLimitExceeded", "MaxSpotInstanceCountExceeded", "MaxSpotFleetRequestCountExceeded", "VolumeLimitExceeded",
		"MaxIOPSLimitExceeded", "HostLimitExceeded", "AddressLimitExceeded", "SnapshotLimitExceeded", "ResourceLimitExceeded",
		"ServiceQuotaExceededException", "ConcurrentSnapshotLimitExceeded", "ResourceCountLimitExceeded", "NetworkInterfaceLimitExceeded",
		"PrivateIpAddressLimitExceeded", "VolumeIOPSLimitExceeded", "VolumeTypeNotAvailableInZone",
	}
	unusableCodes = []string{
		"UnauthorizedOperation", "AuthFailure", "InvalidClientTokenId", "SignatureDoesNotMatch", "ExpiredToken", "ExpiredTokenException", "OptInRequired",
		"AccessDenied", "AccessDeniedException", "UnrecognizedClientException", "Blocked", "PendingVerification", "RequestExpired", "MissingAuthenticationToken",
		"InvalidAccessKeyId", "NoSuchBucket", "AllAccessDisabled", "InvalidSecurity", "IncompleteSignature",
	}
	transientCodes = []string{
		"RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled", "RequestThrottledException", "TooManyRequestsException",
		"SlowDown", "EC2ThrottledException", "BandwidthLimitExceeded", "InternalError", "InternalFailure", "InternalServerException", "Unavailable",
		"ServiceUnavailable", "RequestTimeout", "PriorRequestNotComplete", "IncorrectInstanceState", "IncorrectState", "RequestThrottlingException",
	}
)

// mostWords bounds what is shown of Amazon's words, in bytes: the end of an UnauthorizedOperation is one word of up to
// 1,500, of which "aws sts decode-authorization-message" needs each.
const mostWords = 4 << 10

// said are Amazon's words as errors have them.
func said(text string) string { return providers.WordsOf(text, mostWords) }

// failure says what an error of the SDK means for a daemon, with the service's words.
func failure(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []error{
		providers.ErrNotFound, providers.ErrQuota, providers.ErrTransient, providers.ErrUnanswered, providers.ErrInvalid, providers.ErrUnusable,
		providers.ErrChecksum, providers.ErrNodeFailed, providers.ErrNotSupported,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		if untrusted := providers.Untrusted(err, "AWS_CA_BUNDLE in the daemons' environment"); untrusted != nil {
			return &refusal{kind: providers.ErrUnusable, text: providers.Words(untrusted.Error()), cause: untrusted}
		}
		return &refusal{kind: providers.ErrTransient, text: providers.Words(withoutAnswer(err)), cause: err}
	}
	text := said(fmt.Sprintf("%s: %s", api.ErrorCode(), strings.TrimSpace(api.ErrorMessage())))
	r := &refusal{kind: meaning(api.ErrorCode(), statusOf(err)), code: api.ErrorCode()}
	if answer, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		if answer.ServiceRequestID() != "" {
			text += " (request " + providers.Words(answer.ServiceRequestID()) + ")" // what Amazon's support asks for first
		}
		r.limited(answer)
	}
	r.text = text
	return r
}

// withoutAnswer is the text of an error without an answer: the host and the cause, without the SDK's words around them.
func withoutAnswer(err error) string {
	call, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err.Error()
	}
	host := "Amazon"
	if at, failed := url.Parse(call.URL); failed == nil {
		host = at.Host
	}
	return fmt.Sprintf("no answer from %s: %v", host, call.Err)
}

// limited notes for how long an answer asks to wait. A refusal with Retry-After holds for the moment only.
func (r *refusal) limited(answer *awshttp.ResponseError) {
	if answer.ResponseError == nil || answer.Response == nil {
		return
	}
	var asked bool
	if r.pause, asked = providers.RetryAfter(answer.Response.Header, time.Now()); asked && !errors.Is(r.kind, providers.ErrQuota) {
		r.kind = providers.ErrTransient
	}
}

// refusal is an answer that is an error, or that there was none.
type refusal struct {
	kind       error
	code, text string
	cause      error         // without an answer
	pause      time.Duration // for which the service asked; 0 if it did not ask
}

// Pause returns the time for which the service asked (Retry-After); without an answer, that of the cause.
func (r *refusal) Pause() time.Duration { return max(r.pause, providers.PauseOf(r.cause)) }

// Error tells the meaning and the service's words.
func (r *refusal) Error() string { return r.kind.Error() + ": " + r.text }

// Unwrap gives the meaning and, without an answer, the cause.
func (r *refusal) Unwrap() []error {
	if r.cause == nil {
		return []error{r.kind}
	}
	return []error{r.kind, r.cause}
}

// codeOf is the code of an error; "" is none.
func codeOf(err error) string {
	if known, ok := errors.AsType[*refusal](err); ok {
		return known.code
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

func statusOf(err error) int {
	if answer, ok := errors.AsType[*awshttp.ResponseError](err); ok && answer.ResponseError != nil && answer.Response != nil {
		return answer.HTTPStatusCode()
	}
	return 0
}

// meaning is what a code says.
func meaning(code string, status int) error {
	switch {
	case slices.Contains(capacityCodes, code), slices.Contains(quotaCodes, code):
		return providers.ErrQuota
	case slices.Contains(unusableCodes, code):
		return providers.ErrUnusable
	case slices.Contains(transientCodes, code), status >= http.StatusInternalServerError:
		return providers.ErrTransient
	case isMissing(code):
		return providers.ErrNotFound
	}
	return providers.ErrInvalid
}

// isMissing tells codes of ids that nothing has, also of those that nothing could have.
func isMissing(code string) bool {
	return strings.HasSuffix(code, ".NotFound") || strings.HasSuffix(code, ".Malformed") && strings.Contains(code, "ID") ||
		strings.HasSuffix(code, "NotFoundException") || code == "NoSuchKey" || code == "InvalidConversionTaskId" || code == "NotFound" || code == "InvalidAMIID.Unavailable" || code == "ResourceNotFoundException"
}

// missing reports whether a service said that something does not exist.
func missing(err error) bool { return isMissing(codeOf(err)) }

// noCapacity reports whether another zone may have what this one does not.
func noCapacity(err error) bool {
	code := codeOf(err)
	return slices.Contains(capacityCodes, code) || code == "Unsupported" && strings.Contains(err.Error(), "Availability Zone")
}

// unanswered reports whether a request may have left that nobody has answered.
func unanswered(err error) bool {
	if err == nil || codeOf(err) != "" || errors.Is(err, providers.ErrUnusable) || providers.Untrusted(err, "") != nil {
		return false
	}
	dial, ok := errors.AsType[*net.OpError](err)
	return !ok || dial.Op != "dial"
}
