package aws

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"poolkeeper/providers"
)

func answer(code, message string) error {
	return fmt.Errorf("operation error: %w", &smithy.GenericAPIError{Code: code, Message: message})
}

func TestWhatCodesMean(t *testing.T) {
	for code, want := range map[string]error{
		"VcpuLimitExceeded": providers.ErrQuota, "InsufficientInstanceCapacity": providers.ErrQuota, "HostLimitExceeded": providers.ErrQuota,
		"RequestLimitExceeded": providers.ErrTransient, "InternalError": providers.ErrTransient, "SlowDown": providers.ErrTransient,
		"UnauthorizedOperation": providers.ErrUnusable, "AuthFailure": providers.ErrUnusable, "AccessDenied": providers.ErrUnusable,
		"InvalidAMIID.NotFound": providers.ErrNotFound, "InvalidAMIID.Malformed": providers.ErrNotFound, "InvalidInstanceID.NotFound": providers.ErrNotFound,
		"InvalidParameterValue": providers.ErrInvalid, "Unsupported": providers.ErrInvalid,
	} {
		if err := failure(answer(code, "words")); !errors.Is(err, want) || codeOf(err) != code {
			t.Errorf("%s is %v, want %v", code, err, want)
		}
	}
	if err := failure(io.ErrUnexpectedEOF); !errors.Is(err, providers.ErrTransient) {
		t.Errorf("no answer is %v", err)
	}
}

// What "aws sts decode-authorization-message" takes is whole, in errors and in what config-validate says.
func TestEncodedMessageIsWhole(t *testing.T) {
	encoded := strings.Repeat("x9-_", 375)
	err := failure(answer("UnauthorizedOperation", "You are not authorized to perform this operation. User: arn:aws:sts::1:assumed-role/a/b is not authorized to perform: "+
		"ec2:RunInstances on resource: arn:aws:ec2:eu-north-1:1:subnet/subnet-1 because no identity-based policy allows the action. Encoded authorization failure message: "+encoded))
	for _, text := range []string{err.Error(), words(err)} {
		if !strings.HasSuffix(text, "message: "+encoded) {
			t.Errorf("%q has not all of it", text)
		}
	}
}

// Another zone is asked only where it may have what this one has not, and a machine may come yet
// only where a request has left.
func TestWhatMayComeYet(t *testing.T) {
	if !noCapacity(answer("Unsupported", "Your requested instance type is not supported in your requested Availability Zone")) ||
		noCapacity(answer("Unsupported", "no such thing")) || noCapacity(answer("VcpuLimitExceeded", "")) {
		t.Error("another zone is asked for the wrong reasons")
	}
	if unanswered(answer("InternalError", "")) || unanswered(&net.OpError{Op: "dial", Err: io.EOF}) || !unanswered(&net.OpError{Op: "read", Err: io.EOF}) || unanswered(nil) {
		t.Error("what was asked is not what was answered")
	}
}

// The reason of a node's end says whose fault it was: an image must not be blamed for a spot
// instance that is taken back.
func TestWhyInstancesEnd(t *testing.T) {
	for code, want := range map[string]error{
		"Server.SpotInstanceTermination": providers.ErrNotFound, "Server.SpotInstanceShutdown": providers.ErrNotFound,
		"Client.UserInitiatedShutdown": providers.ErrNotFound, "Server.InsufficientInstanceCapacity": providers.ErrQuota,
		"Client.VolumeLimitExceeded": providers.ErrQuota, "Server.InternalError": providers.ErrTransient,
		"Client.InstanceInitiatedShutdown": providers.ErrNodeFailed, "Client.InternalError": providers.ErrNodeFailed, "": providers.ErrNotFound,
	} {
		i := &types.Instance{State: &types.InstanceState{Name: types.InstanceStateNameTerminated}, StateReason: &types.StateReason{Code: sdk.String(code)}}
		if err := why(i); !errors.Is(err, want) {
			t.Errorf("%s means %v, want %v", code, err, want)
		}
	}
}
