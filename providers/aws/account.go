package aws

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ebs"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	"golang.org/x/time/rate"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

const (
	// tries are those of one call: the service throttles whom it does not like, and says so.
	tries        = 8
	fewTries     = 3 // where a person waits
	longestPause = 20 * time.Second
	// renewBefore is how long before their end keys are renewed: one's clock may be late, and a
	// request under way. Amazon has new ones of a machine's role five minutes before.
	renewBefore = 3 * time.Minute
	// readsPerChange is how many calls that read may be made for one that changes something, as
	// Nodepool's.
	readsPerChange = 10
)

// account speaks with the services of one account and region. The SDK logs in, signs, and
// repeats; what we add is the pace, and the counting.
type account struct {
	ec2    *ec2API
	ebs    *ebs.Client
	bucket *bucket
	quotas quotaAPI
	whoami func(context.Context, *sts.GetCallerIdentityInput, ...func(*sts.Options)) (*sts.GetCallerIdentityOutput, error)

	transport      *http.Transport
	changes, reads *rate.Limiter
	calls          providers.CallCounter
}

// connect makes the clients. Credentials are found as every tool of Amazon's finds them: by the
// environment, the profile, which may assume a role or log in by SSO, or the machine's role.
func connect(cfg *configs.Provider, own *configs.AWSDriver, opts Options) (*account, error) {
	a := &account{changes: limiter(own.Rate), reads: limiter(own.Rate * readsPerChange)}
	attempts, pause := tries, longestPause
	if opts.RetryTime > 0 {
		attempts, pause = fewTries, opts.RetryTime
	}
	load := []func(*config.LoadOptions) error{
		config.WithRegion(cfg.Region),
		// The keys come by this one. The SDK asks for them without a deadline, once for all who wait.
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(cmp.Or(opts.CallTime, defaultCallTime))),
		config.WithAppID("poolkeeper"),
		config.WithLogger(logging.LoggerFunc(func(_ logging.Classification, format string, args ...any) {
			opts.Logger.Debug("Amazon's SDK has a remark", "provider", cfg.Name, "remark", fmt.Sprintf(format, args...))
		})),
		config.WithCredentialsCacheOptions(func(o *sdk.CredentialsCacheOptions) { o.ExpiryWindow = renewBefore }),
		config.WithRetryer(func() sdk.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts, o.MaxBackoff, o.RateLimiter = attempts, pause, ratelimit.None
				// The service calls it an error of its own, but another zone is the better try.
				o.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(func(err error) sdk.Ternary {
					if slices.Contains(capacityCodes, codeOf(err)) {
						return sdk.FalseTernary
					}
					return sdk.UnknownTernary
				})}, o.Retryables...)
			})
		}),
		config.WithAPIOptions([]func(*middleware.Stack) error{a.paced}),
	}
	if own.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(own.Profile))
	}
	found, err := config.LoadDefaultConfig(context.Background(), load...)
	if err != nil {
		return nil, loginError(own.Profile, err)
	}
	builder, ok := found.HTTPClient.(*awshttp.BuildableClient)
	if !ok {
		builder = awshttp.NewBuildableClient()
	}
	a.transport = builder.GetTransport() // with the authorities that the environment names
	a.transport.ResponseHeaderTimeout = opts.CallTime
	if opts.CallTime == 0 {
		a.transport.ResponseHeaderTimeout = defaultCallTime
	}
	a.transport.MaxIdleConnsPerHost = blocksAtOnce
	client := &http.Client{Transport: new(providers.Courtesy).Transport(a.transport), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	found.HTTPClient = client
	found.Credentials = sdk.NewCredentialsCache(&told{from: found.Credentials, secrets: opts.Secrets, whose: cfg.Name, profile: own.Profile})
	nodes := ec2.NewFromConfig(found)
	a.ec2, a.ebs, a.quotas, a.whoami = newEC2(nodes), ebs.NewFromConfig(found), servicequotas.NewFromConfig(found).ListServiceQuotas, sts.NewFromConfig(found).GetCallerIdentity
	a.bucket, err = newBucket(context.Background(), a, found, client, nodes.Options(), own.Bucket)
	return a, err
}

func limiter(perSecond float64) *rate.Limiter {
	if perSecond <= 0 {
		return rate.NewLimiter(rate.Inf, 1)
	}
	return rate.NewLimiter(rate.Limit(perSecond), max(1, int(math.Ceil(perSecond))))
}

func (a *account) close() { a.transport.CloseIdleConnections() }

// paced has each try of each call wait for its turn, and counts how long it took.
func (a *account) paced(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("pace", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
		operation := middleware.GetOperationName(ctx)
		if limit := a.limit(operation); limit != nil {
			if err := limit.Wait(ctx); err != nil {
				return middleware.FinalizeOutput{}, middleware.Metadata{}, &sdk.RequestCanceledError{Err: err}
			}
		}
		asked := clock.Now(ctx)
		out, meta, err := next.HandleFinalize(ctx, in)
		if ctx.Err() == nil && !isData(operation) {
			a.calls.Answered(strings.ToLower(awsmiddleware.GetServiceID(ctx))+" "+operation, clock.Now(ctx).Sub(asked))
		}
		return out, meta, err
	}), "Retry", middleware.After)
}

// limit is what a call waits for; nil is nothing.
func (a *account) limit(operation string) *rate.Limiter {
	switch {
	case isData(operation):
		return nil
	case strings.HasPrefix(operation, "Describe"), strings.HasPrefix(operation, "Get"), strings.HasPrefix(operation, "List"), strings.HasPrefix(operation, "Head"):
		return a.reads
	}
	return a.changes
}

// isData tells calls that carry parts of images, which take as long as these are large.
func isData(operation string) bool {
	return operation == "PutSnapshotBlock" || operation == "UploadPart"
}
