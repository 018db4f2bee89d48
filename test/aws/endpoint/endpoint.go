// Package endpoint is an Amazon of our own for tests: EC2, EBS direct, S3, Service Quotas, STS and SSO on one port of the
// loopback. Each request and each answer is checked against Amazon's published service model (package model), each
// signature is verified, and it lies as the real one does where a test asks for it.
package endpoint

import (
	"errors"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"poolkeeper/test/aws/model"
)

// Options are how an endpoint begins. The zero value is right for most tests.
type Options struct {
	// Pace is how long a machine boots or ends, and an import or a snapshot takes (default 20 ms).
	Pace time.Duration
	// Address gives the public and private address of the n-th machine (default 203.0.113.n and 10.x).
	Address func(n int) (public, private string)
	// Seed is of what is decided by chance.
	Seed uint64
}

// Endpoint is a running one.
type Endpoint struct {
	URL, Region, Account string
	AccessKey, SecretKey string
	// What exists when it starts.
	Zones, Subnets                               []string
	VPC, SecurityGroup, KeyName, Bucket, Profile string
	// ImageRole may import images.
	ImageRole string
	// WebToken is what the identity provider of a cluster gives to a pod, BearerToken what somebody has who is logged in by
	// SSO, and RefreshToken gives another one.
	WebToken, BearerToken, RefreshToken string

	options Options
	t       testing.TB

	mu      sync.Mutex
	world   *world
	faults  faults
	records []Request
	refused []string
	expect  bool
}

// RequiredVariable is set by `make test-aws`: what would be skipped then fails.
const RequiredVariable = "POOLKEEPER_AWS"

// Start starts an endpoint that ends with the test. It skips the test where Debian's models are not installed.
func Start(tb testing.TB, options Options) *Endpoint {
	tb.Helper()
	for _, name := range model.Names() {
		if _, err := model.Load(name); errors.Is(err, model.ErrMissing) && os.Getenv(RequiredVariable) == "" {
			tb.Skip(err)
		} else if err != nil {
			tb.Fatal(err)
		}
	}
	if options.Pace == 0 {
		options.Pace = 20 * time.Millisecond
	}
	e := &Endpoint{
		Region: "eu-central-1", Account: "123456789012", AccessKey: "AKIAPOOLKEEPERTEST00", SecretKey: "secret/of+the/endpoint",
		KeyName: "key", Bucket: "images", Profile: "node", ImageRole: "vmimport",
		WebToken: "web.identity.token", BearerToken: "bearer-token-of-sso", RefreshToken: "refresh-token-of-sso",
		options: options, t: tb,
		faults: faults{chance: rand.New(rand.NewPCG(options.Seed, 1))},
	}
	e.world = newWorld(e)
	server := httptest.NewServer(e)
	e.URL = server.URL
	tb.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.refused) > 0 && !e.expect {
			tb.Errorf("requests that Amazon's model does not have:\n%s", strings.Join(e.refused, "\n"))
		}
		if e.expect && len(e.refused) == 0 {
			tb.Error("no request was refused by Amazon's model, which the test expects")
		}
	})
	return e
}

// Env makes the SDK, the CLI and boto3 speak to this endpoint, and read nothing of this machine's.
func (e *Endpoint) Env(t *testing.T) {
	t.Helper()
	for name, value := range e.Environment() {
		t.Setenv(name, value)
	}
}

// Environment is what Env sets.
func (e *Endpoint) Environment() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": e.URL, "AWS_ACCESS_KEY_ID": e.AccessKey, "AWS_SECRET_ACCESS_KEY": e.SecretKey,
		"AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_REGION": e.Region, "AWS_DEFAULT_REGION": e.Region,
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
		"AWS_PAGER": "",
		// The SDK for Go heeds AWS_ENDPOINT_URL only when it has logged in.
		"AWS_ENDPOINT_URL_STS": e.URL, "AWS_ENDPOINT_URL_SSO": e.URL, "AWS_ENDPOINT_URL_SSO_OIDC": e.URL,
	}
}

// ExpectRefused says that this test sends requests that the model refuses; without, they fail it.
func (e *Endpoint) ExpectRefused() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.expect = true
}
