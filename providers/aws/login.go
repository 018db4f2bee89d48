package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"

	"poolkeeper/configs/clock"
	"poolkeeper/configs/redact"
	"poolkeeper/providers"
)

// told tells what we log in with to who keeps it out of logs.
type told struct {
	from    sdk.CredentialsProvider
	secrets *redact.Secrets
	whose   string
	profile string
	last    sdk.Credentials // that we got; renewBefore before their end they count as expired
}

// retryKeys is how long keys that could not be renewed, and are good still, are used until the next try.
const retryKeys = 20 * time.Second

// Retrieve implements aws.CredentialsProvider.
func (t *told) Retrieve(ctx context.Context) (sdk.Credentials, error) {
	if t.from == nil {
		return sdk.Credentials{}, fmt.Errorf("%w: no credentials are configured", providers.ErrUnusable)
	}
	c, err := t.from.Retrieve(ctx)
	if err != nil {
		now := clock.Now(ctx)
		if t.last.CanExpire && t.last.Expires.Add(renewBefore).Sub(now) > 2*retryKeys {
			kept := t.last
			kept.Expires = now.Add(retryKeys)
			return kept, nil
		}
		return c, loginError(t.profile, err)
	}
	t.last = c
	t.secrets.Set("aws "+t.whose, c.SecretAccessKey, c.SessionToken)
	return c, nil
}

// ssoCodes are those of a log-in by SSO that is over.
var ssoCodes = []string{"UnauthorizedException", "InvalidGrantException", "InvalidClientException"}

// loginError says which profile cannot log in, and what helps.
func loginError(profile string, err error) error {
	name := cmp.Or(profile, os.Getenv("AWS_PROFILE"), "default")
	var help string
	_, ended := errors.AsType[*ssocreds.InvalidTokenError](err)
	_, unknown := errors.AsType[config.SharedConfigProfileNotExistError](err)
	switch {
	case ended, strings.Contains(err.Error(), "cached SSO token"), slices.Contains(ssoCodes, codeOf(err)):
		help = fmt.Sprintf("its SSO session is over, or was never begun: as the daemons' user, run `aws sso login --profile %s`", name)
	case unknown:
		help = "it is neither in ~/.aws/config nor in ~/.aws/credentials of the daemons' user"
	case profile == "" && strings.Contains(err.Error(), "EC2 IMDS"):
		help = "there are no keys in the environment and none of the profile, and this machine has no role"
	case codeOf(err) == "AccessDenied":
		help = "the role may not be assumed"
	default:
		return fmt.Errorf("%w: log in by profile %s: %w", providers.ErrUnusable, name, err)
	}
	return fmt.Errorf("%w: log in by profile %s: %s: %w", providers.ErrUnusable, name, help, err)
}
