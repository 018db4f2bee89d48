package driver_test

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // it names files of Amazon's tools
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/configs/redact"
	"poolkeeper/providers"
	"poolkeeper/providers/aws"
	"poolkeeper/test/aws/endpoint"
)

// account is the daemons' user on a host, and what is logged.
type account struct {
	e       *endpoint.Endpoint
	home    string
	log     bytes.Buffer
	secrets redact.Secrets
}

// newAccount has a user with a configuration of Amazon's tools, and no keys in the environment.
func newAccount(t *testing.T, text string) *account {
	t.Helper()
	a := &account{e: endpoint.Start(t, endpoint.Options{}), home: t.TempDir()}
	a.e.Env(t)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", a.home)
	t.Setenv("AWS_CONFIG_FILE", a.write(t, ".aws/config", text))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", a.write(t, ".aws/credentials",
		fmt.Sprintf("[base]\naws_access_key_id = %s\naws_secret_access_key = %s\n", a.e.AccessKey, a.e.SecretKey)))
	return a
}

func (a *account) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(a.home, name)
	text = strings.ReplaceAll(text, "ACCOUNT", a.e.Account)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// sso writes what is kept of a log-in by SSO; refresh says whether it can be prolonged.
func (a *account) sso(t *testing.T, session string, until time.Time, refresh bool) {
	t.Helper()
	sum := sha1.Sum([]byte(session)) //nolint:gosec // it names files of Amazon's tools
	more := ""
	if refresh {
		more = fmt.Sprintf(`, "clientId": "client", "clientSecret": "the-client-secret", "refreshToken": %q`, a.e.RefreshToken)
	}
	a.write(t, ".aws/sso/cache/"+hex.EncodeToString(sum[:])+".json",
		fmt.Sprintf(`{"accessToken": %q, "expiresAt": %q%s}`, a.e.BearerToken, until.UTC().Format(time.RFC3339), more))
}

// ask lists nodes by a profile, so many times.
func (a *account) ask(t *testing.T, profile string, times int) error {
	t.Helper()
	cfg := section(a.e, configs.AWSImportSnapshot)
	cfg.Settings.(*configs.AWSDriver).Profile = profile
	p, err := aws.New(cfg, aws.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &a.log, Level: hclog.Trace}), Secrets: &a.secrets, RetryTime: time.Millisecond})
	if err != nil {
		return err
	}
	defer p.Close() //nolint:errcheck // nothing is written
	for range times {
		if _, err := p.ListNodes(within(t)); err != nil {
			return err
		}
	}
	return nil
}

// silent sees that nothing secret was logged, or is in an error, and that what we log in with is known as secret.
func (a *account) silent(t *testing.T, err error) {
	t.Helper()
	for _, secret := range append(a.e.Sessions(), a.e.SecretKey, a.e.WebToken, a.e.BearerToken, a.e.RefreshToken, "the-client-secret") {
		if strings.Contains(a.log.String(), secret) || err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s shows: %v, %s", secret, err, a.log.String())
		}
	}
	if err == nil && !slices.ContainsFunc(a.e.Sessions(), a.secrets.Has) {
		t.Error("who keeps secrets out of logs knows no key of a session")
	}
}

const profiles = `
[profile role]
role_arn = arn:aws:iam::ACCOUNT:role/ci
source_profile = base
[profile chain]
role_arn = arn:aws:iam::ACCOUNT:role/deeper
source_profile = role
[profile forbidden]
role_arn = arn:aws:iam::ACCOUNT:role/forbidden
source_profile = base
[profile web]
role_arn = arn:aws:iam::ACCOUNT:role/pod
web_identity_token_file = HOME/token
[profile sso]
sso_session = company
sso_account_id = ACCOUNT
sso_role_name = ci
[profile oldsso]
sso_start_url = https://company.awsapps.com/start
sso_region = eu-west-1
sso_account_id = ACCOUNT
sso_role_name = ci
[profile ssorole]
role_arn = arn:aws:iam::ACCOUNT:role/ci
source_profile = sso
[sso-session company]
sso_start_url = https://company.awsapps.com/start
sso_region = eu-west-1
sso_registration_scopes = sso:account:access
`

// Each way to log in gets keys, gets new ones as often as these end, and shows none of them.
func TestLogins(t *testing.T) {
	for _, way := range []struct {
		profile, operation string // "" is the machine's role
		refreshed          int
	}{
		{"role", "AssumeRole", 2},
		{"chain", "AssumeRole", 4},
		{"web", "AssumeRoleWithWebIdentity", 2},
		{"sso", "GetRoleCredentials", 2},
		{"oldsso", "GetRoleCredentials", 2},
		{"ssorole", "AssumeRole", 2},
		{"", "", 0},
	} {
		t.Run(way.profile, func(t *testing.T) {
			a := newAccount(t, profiles)
			a.write(t, ".aws/config", strings.ReplaceAll(profiles, "HOME", a.home))
			a.write(t, "token", a.e.WebToken)
			a.sso(t, "company", time.Now().Add(time.Hour), false)
			a.sso(t, "https://company.awsapps.com/start", time.Now().Add(time.Hour), false)
			if way.profile == "" {
				t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
				t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", a.e.Metadata(t))
			}
			err := a.ask(t, way.profile, 3)
			if err != nil {
				t.Fatal(err)
			}
			once := a.e.Count(way.operation)
			if way.operation != "" && (once == 0 || once > 2) {
				t.Errorf("keys of an hour were asked for %d times", once)
			}
			a.e.SessionsLast(time.Minute) // less than the SDK wants to have left
			if err := a.ask(t, way.profile, 3); err != nil {
				t.Fatal(err)
			}
			if n := a.e.Count(way.operation) - once; n < way.refreshed {
				t.Errorf("keys of a minute were asked for %d times", n)
			}
			a.silent(t, nil)
		})
	}
}

// A token of SSO that is over is prolonged where it can be; where not, the error says whose it is, and what to do.
func TestSSOThatIsOver(t *testing.T) {
	a := newAccount(t, profiles)
	a.sso(t, "company", time.Now().Add(-time.Minute), true)
	if err := a.ask(t, "sso", 1); err != nil || a.e.Count("CreateToken") != 1 {
		t.Errorf("it was prolonged %d times: %v", a.e.Count("CreateToken"), err)
	}
	ended := func(what, profile string) {
		t.Helper()
		err := a.ask(t, profile, 1)
		if err == nil || !errors.Is(err, providers.ErrUnusable) || !strings.Contains(err.Error(), "profile "+profile+": its SSO session is over") ||
			!strings.Contains(err.Error(), "aws sso login --profile "+profile) {
			t.Errorf("%s: %v", what, err)
		}
		a.silent(t, err)
	}
	a.sso(t, "company", time.Now().Add(-time.Minute), false)
	ended("over, and cannot be prolonged", "sso")
	ended("none", "oldsso")
	a.sso(t, "https://company.awsapps.com/start", time.Now().Add(-time.Minute), false)
	ended("over", "oldsso")
	a.e.EndSSO()
	a.sso(t, "company", time.Now().Add(-time.Minute), true)
	ended("over, and logged out", "sso")
	a.sso(t, "company", time.Now().Add(time.Hour), true)
	ended("logged out", "sso")
}

// A log-in that cannot work says by which profile, and why.
func TestLoginsThatCannotWork(t *testing.T) {
	a := newAccount(t, profiles)
	a.write(t, ".aws/config", strings.ReplaceAll(profiles, "HOME", a.home))
	a.write(t, "token", "another")
	for profile, want := range map[string]string{
		"forbidden": "log in by profile forbidden: the role may not be assumed",
		"web":       "log in by profile web: ",
		"absent":    "log in by profile absent: it is neither in ~/.aws/config nor in",
		"":          "log in by profile default: there are no keys in the environment",
	} {
		err := a.ask(t, profile, 1)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, providers.ErrUnusable) {
			t.Errorf("%q: %v, want %s", profile, err, want)
		}
		a.silent(t, err)
	}
}
