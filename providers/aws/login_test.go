package aws

import (
	"context"
	"errors"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"

	"poolkeeper/configs/redact"
)

// issuer gives keys that last for as long as it says, or fails.
type issuer struct {
	last time.Duration
	err  error
}

func (i *issuer) Retrieve(context.Context) (sdk.Credentials, error) {
	return sdk.Credentials{AccessKeyID: "id", SecretAccessKey: "secret", CanExpire: true, Expires: time.Now().Add(i.last - renewBefore)}, i.err
}

// Keys are renewed before their end. While that fails, those that are good still are used; not to their last second.
func TestKeysThatCannotBeRenewed(t *testing.T) {
	for _, c := range []struct {
		name  string
		last  time.Duration
		fails bool
	}{
		{"good for two minutes", 2 * time.Minute, false},
		{"good for half a minute", 30 * time.Second, true},
		{"over", -time.Minute, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := &issuer{last: c.last}
			keys := &told{from: from, secrets: &redact.Secrets{}, whose: "north"}
			if _, err := keys.Retrieve(t.Context()); err != nil {
				t.Fatal(err)
			}
			from.err = errors.New("nobody answers")
			got, err := keys.Retrieve(t.Context())
			if (err != nil) != c.fails {
				t.Fatalf("error %v", err)
			}
			if err == nil && (got.AccessKeyID != "id" || time.Until(got.Expires) > retryKeys || got.Expired()) {
				t.Errorf("keys %q until %s", got.AccessKeyID, got.Expires)
			}
		})
	}
}
