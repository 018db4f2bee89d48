package clouds

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2"
)

// home makes a directory with files and an environment in which it is HOME, and
// .config/openstack/clouds.yaml the file to be found.
func home(t *testing.T, files map[string]string) Env {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, ".config/openstack", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return variables(map[string]string{"HOME": dir})
}

func variables(set map[string]string) Env {
	return func(name string) (string, bool) { v, ok := set[name]; return v, ok }
}

const entry = `clouds:
  north:
    region_name: one
    auth: {auth_url: "https://north/v3", username: ci, password: 0123, project_name: ci}
`

func TestSourcesOverlayEachOther(t *testing.T) {
	env := home(t, map[string]string{
		"clouds-public.yaml": `public-clouds:
  vendor: {auth: {auth_url: "https://vendor/v3"}, interface: internal, force_ipv4: true}
`,
		"clouds.yaml": `clouds:
  site:
    profile: vendor
    regions:
    - one
    - name: two
      values: {interface: admin, auth: {project_name: second}}
    auth: {username: ci, project_name: first}
`,
		"secure.yaml": "clouds: {site: {auth: {password: secret}}}\n",
	})
	first, err := Read("site", "", env, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Read("site", "two", env, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][4]string{
		"first":  {first.Region, first.Interface, first.Auth.ProjectName, first.Auth.Password},
		"second": {second.Region, second.Interface, second.Auth.ProjectName, second.Auth.Password},
	} {
		want := map[string][4]string{
			"first": {"one", "internal", "first", "secret"}, "second": {"two", "admin", "second", "secret"},
		}[name]
		if got != want {
			t.Errorf("%s region: %q, want %q", name, got, want)
		}
	}
	if !first.ForceIPv4 || first.Auth.URL != "https://vendor/v3" || first.Auth.Username != "ci" {
		t.Errorf("got %+v", first)
	}
}

func TestVendorWithoutFile(t *testing.T) {
	env := home(t, map[string]string{"clouds.yaml": "clouds: {site: {profile: vexxhost, auth: {username: ci, password: x}}}"})
	c, err := Read("site", "", env, nil)
	if err != nil || c.Auth.URL != "https://auth.vexxhost.net/v3" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestWhereItIsFound(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"named.yaml", "xdg/openstack/clouds.yml", "home/.config/openstack/clouds.json"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(entry), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for want, set := range map[string]map[string]string{
		"named.yaml":                         {"OS_CLIENT_CONFIG_FILE": dir + "/named.yaml", "HOME": dir + "/home"},
		"xdg/openstack/clouds.yml":           {"XDG_CONFIG_HOME": dir + "/xdg", "HOME": dir + "/home"},
		"home/.config/openstack/clouds.json": {"HOME": dir + "/home"},
	} {
		c, err := Read("north", "", variables(set), nil)
		if err != nil || c.Source != filepath.Join(dir, want) {
			t.Errorf("found in %s, %v, want %s", c.Source, err, want)
		}
	}
	_, err := Read("north", "", variables(map[string]string{"OS_CLIENT_CONFIG_FILE": dir + "/none", "HOME": dir + "/home"}), nil)
	if !errors.Is(err, ErrNoFile) {
		t.Errorf("a file that is named and not there gave %v", err)
	}
}

// No message holds a value of a file, since any of them may be a secret.
func TestBadFiles(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		want  error
		words string
	}{
		"no such cloud": {entry, ErrUnknown, "has north"},
		"no clouds":     {"other: 1", ErrUnknown, "has no clouds"},
		"not YAML":      {"clouds: {site: hunter2", ErrIncomplete, "clouds.yaml"},
		"wrong type":    {"clouds: {site: {auth: [hunter2]}}", ErrIncomplete, "line 1"},
		"no auth_url":   {"clouds: {site: {auth: {password: hunter2}}}", ErrIncomplete, "auth_url"},
	} {
		_, err := Read("site", "", home(t, map[string]string{"clouds.yaml": c.text}), nil)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.words) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	set := map[string]string{
		"OS_AUTH_URL": "https://north/v3", "OS_USERNAME": "ci", "OS_PASSWORD": "x", "OS_PROJECT_NAME": "p",
		"OS_USER_DOMAIN_NAME": "users", "OS_PROJECT_DOMAIN_ID": "projects", "OS_REGION_NAME": "one",
		"OS_INTERFACE": "internalURL", "OS_INSECURE": "true",
	}
	for _, name := range []string{"", FromEnvironment} {
		c, err := Read(name, "", variables(set), nil)
		if err != nil {
			t.Fatal(err)
		}
		options, err := c.AuthOptions()
		want := gophercloud.AuthOptions{
			IdentityEndpoint: "https://north/v3", Username: "ci", Password: "x", DomainName: "users", TenantName: "p",
			Scope: &gophercloud.AuthScope{ProjectName: "p", DomainID: "projects"},
		}
		if diff := cmp.Diff(want, options); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if got := c.EndpointOpts(); got.Region != "one" || got.Availability != gophercloud.AvailabilityInternal {
			t.Errorf("endpoints of %+v", got)
		}
		if config, err := c.TLS(); err != nil || !config.InsecureSkipVerify {
			t.Errorf("TLS of %+v, %v", config, err)
		}
	}
	if _, err := Read("", "", variables(nil), nil); !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), "OS_AUTH_URL") {
		t.Errorf("an empty environment gave %v", err)
	}
}

func TestAuthOptions(t *testing.T) {
	const url = "https://north/v3"
	for name, c := range map[string]struct {
		kind string
		auth Auth
		want gophercloud.AuthOptions
		err  string
	}{
		"password": {"password", Auth{Username: "u", Password: "p", ProjectName: "x"}, gophercloud.AuthOptions{
			Username: "u", Password: "p", DomainID: "default", TenantName: "x",
			Scope: &gophercloud.AuthScope{ProjectName: "x", DomainID: "default"},
		}, ""},
		"user's id": {"", Auth{UserID: "i", Username: "u", Password: "p", ProjectID: "x"}, gophercloud.AuthOptions{
			UserID: "i", Password: "p", TenantID: "x", Scope: &gophercloud.AuthScope{ProjectID: "x"},
		}, ""},
		"older words": {"", Auth{Username: "u", Password: "p", TenantID: "x", DomainName: "d"}, gophercloud.AuthOptions{
			Username: "u", Password: "p", DomainName: "d", TenantID: "x", Scope: &gophercloud.AuthScope{ProjectID: "x"},
		}, ""},
		"credential": {"v3applicationcredential", Auth{AppCredID: "c", AppCredSecret: "s", ProjectName: "x"}, gophercloud.AuthOptions{
			ApplicationCredentialID: "c", ApplicationCredentialSecret: "s",
		}, ""},
		"credential's name": {"", Auth{AppCredName: "c", AppCredSecret: "s", Username: "u", UserDomainID: "d"}, gophercloud.AuthOptions{
			ApplicationCredentialName: "c", ApplicationCredentialSecret: "s", Username: "u", DomainID: "d",
		}, ""},
		"token": {"v3token", Auth{Token: "t", ProjectID: "x"}, gophercloud.AuthOptions{
			TokenID: "t", TenantID: "x", Scope: &gophercloud.AuthScope{ProjectID: "x"},
		}, ""},
		"passcode": {"v3totp", Auth{Username: "u", Passcode: "1", DefaultDomain: "d"}, gophercloud.AuthOptions{
			Username: "u", Passcode: "1", DomainID: "d",
		}, ""},
		"trust": {"", Auth{UserID: "i", Password: "p", TrustID: "t"}, gophercloud.AuthOptions{
			UserID: "i", Password: "p", Scope: &gophercloud.AuthScope{TrustID: "t"},
		}, ""},
		"system": {"", Auth{UserID: "i", Password: "p", SystemScope: "all"}, gophercloud.AuthOptions{
			UserID: "i", Password: "p", Scope: &gophercloud.AuthScope{System: true},
		}, ""},
		"no password":          {"", Auth{Username: "u"}, gophercloud.AuthOptions{}, "password is missing"},
		"no user":              {"", Auth{Password: "p"}, gophercloud.AuthOptions{}, "username is missing"},
		"no secret":            {"", Auth{AppCredID: "c"}, gophercloud.AuthOptions{}, "application_credential_secret is missing"},
		"no credential":        {"v3applicationcredential", Auth{}, gophercloud.AuthOptions{}, "application_credential_id is missing"},
		"what we do not speak": {"v3oidcpassword", Auth{}, gophercloud.AuthOptions{}, "auth_type v3oidcpassword is not supported"},
	} {
		c.auth.URL, c.want.IdentityEndpoint = url, url
		got, err := Cloud{Name: "north", Source: "file", AuthType: c.kind, Auth: c.auth}.AuthOptions()
		if c.err != "" {
			if !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", name, err, c.err)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestTLSFiles(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []Cloud{{CACert: empty}, {CACert: dir + "/none"}, {Cert: empty}, {Cert: dir + "/none", Key: empty}} {
		if _, err := c.TLS(); err == nil {
			t.Errorf("TLS of %+v succeeded", c)
		}
	}
	if config, err := (Cloud{}).TLS(); err != nil || config.InsecureSkipVerify || config.RootCAs != nil {
		t.Errorf("TLS of nothing gave %+v, %v", config, err)
	}
}

// The older words for networks mean what the list says, and what contradicts itself is refused.
func TestNetworks(t *testing.T) {
	yes, no := true, false
	for text, want := range map[string]any{
		"networks: [{name: a, default_interface: true, nat_source: yes}, {name: b, nat_destination: true}]": []Network{
			{Name: "a", DefaultInterface: true, NATSource: true}, {Name: "b", NATDestination: true},
		},
		"internal_network: in\n    external_network: out": []Network{
			{Name: "out", RoutesExternally: &yes, DefaultInterface: true}, {Name: "in", RoutesExternally: &no, NATDestination: true},
		},
		"networks: [{name: a}]\n    external_network: out":                                 "exclude each other",
		"networks: [{name: a, nat_destination: true}, {name: b, nat_destination: true}]":   "only one network can have nat_destination",
		"networks: [{name: a, default_interface: true}, {name: b, default_interface: on}]": "only one network can have default_interface",
	} {
		env := home(t, map[string]string{"clouds.yaml": "clouds:\n  north:\n    auth: {auth_url: \"https://north/v3\"}\n    " + text + "\n"})
		cloud, err := Read("north", "", env, nil)
		var got any = cloud.Networks
		if err != nil {
			got = err.Error()
		}
		if words, refused := want.(string); refused {
			if !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v, want %q", text, err, words)
			}
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// What OpenStack's tools read in clouds.yaml, we read alike.
func TestAsOpenStacksToolsReadIt(t *testing.T) {
	const account = "username: ci, password: x, project_name: ci"
	dir := t.TempDir()
	certificate := filepath.Join(dir, "authority.pem")
	if err := os.WriteFile(certificate, []byte("not a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		entry string
		got   func(Cloud) string
		want  string
	}{
		"region in the address":   {"auth: {auth_url: 'https://{region_name}.example.org/v3', " + account + "}, region_name: north", func(c Cloud) string { return c.Auth.URL }, "https://north.example.org/v3"},
		"region of the profile":   {"profile: citycloud, region_name: Sto2, auth: {" + account + "}", func(c Cloud) string { return c.Auth.URL }, "https://Sto2.citycloud.com:5000/v3/"},
		"first of the profile":    {"profile: otc, auth: {" + account + "}", func(c Cloud) string { return c.Auth.URL + " " + c.Region }, "https://iam.eu-de.otc.t-systems.com/v3 eu-de"},
		"hints of the profile":    {"profile: limestonenetworks, region_name: us-slc, auth: {" + account + "}", func(c Cloud) string { return c.Networks[0].Name + " " + c.Networks[2].Name }, "Public Internet Private Network (Floating Public)"},
		"the entry wins":          {"profile: ovh, auth: {auth_url: 'https://mine/v3', " + account + "}", func(c Cloud) string { return c.Auth.URL + c.FloatingIPSource }, "https://mine/v3None"},
		"credentials beside auth": {"auth_url: 'https://north/v3', " + account + ", auth: {username: within}", func(c Cloud) string { return c.Auth.URL + " " + c.Auth.Username + " " + c.Auth.Password }, "https://north/v3 within x"},
		"home":                    {"cacert: ~/ca.pem, auth: {auth_url: 'https://north/v3', " + account + "}", func(c Cloud) string { return filepath.Base(filepath.Dir(c.CACert)) + "/" + filepath.Base(c.CACert) }, "HOME/ca.pem"},
		"verify by a file":        {"verify: " + certificate + ", auth: {auth_url: 'https://north/v3', " + account + "}", func(c Cloud) string { _, err := c.TLS(); return strings.ReplaceAll(err.Error(), dir, "DIR") }, "read cacert of cloud site: unusable cloud entry: DIR/authority.pem holds no certificate"},
		"insecure":                {"insecure: true, auth: {auth_url: 'https://north/v3', " + account + "}", func(c Cloud) string { config, _ := c.TLS(); return strconv.FormatBool(config.InsecureSkipVerify) }, "true"},
		"types that we lack": {"auth_type: rackspace_apikey, profile: rackspace, auth: {username: ci, api_key: x}", func(c Cloud) string {
			_, err := c.AuthOptions()
			return err.Error()[strings.Index(err.Error(), "auth_type"):]
		}, "auth_type rackspace_apikey is not supported; supported are password, token, v3totp, v3multifactor and v3applicationcredential"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := home(t, map[string]string{"clouds.yaml": "clouds: {site: {" + c.entry + "}}"})
			cloud, err := Read("site", "", env, nil)
			if err != nil {
				t.Fatal(err)
			}
			if dir, _ := env("HOME"); strings.HasPrefix(cloud.CACert, dir) {
				cloud.CACert = strings.Replace(cloud.CACert, dir, "/HOME", 1)
			}
			if got := c.got(cloud); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The secrets may be in any folder of the search path, or where the environment says.
func TestWhereSecretsAreFound(t *testing.T) {
	main, home := t.TempDir(), t.TempDir()
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	secret := func(word string) string { return "clouds: {site: {auth: {password: " + word + "}}}" }
	put(main+"/clouds.yaml", "clouds: {site: {auth: {auth_url: 'https://north/v3', username: ci}}}")
	put(home+"/.config/openstack/secure.yml", secret("home"))
	put(home+"/named.yaml", secret("named"))
	set := map[string]string{"OS_CLIENT_CONFIG_FILE": main + "/clouds.yaml", "HOME": home}
	for _, want := range []string{"home", "beside", "named"} {
		switch want {
		case "beside":
			put(main+"/secure.yaml", secret("beside"))
		case "named":
			set["OS_CLIENT_SECURE_FILE"] = home + "/named.yaml"
		}
		c, err := Read("site", "", variables(set), nil)
		if err != nil || c.Auth.Password != want {
			t.Errorf("read %q, %v, want the password %q", c.Auth.Password, err, want)
		}
	}
}

// A mistake in the file names its line.
func TestSyntaxNamesTheLine(t *testing.T) {
	for text, line := range map[string]string{
		"clouds:\n  site:\n    auth: {password: hunter2\n  other: {}\n": "line ",
		"clouds:\n  site:\n\tauth: hunter2\n":                           "line 3",
		"clouds:\n- hunter2\n":                                          "line 2",
	} {
		_, err := Read("site", "", home(t, map[string]string{"clouds.yaml": text}), nil)
		if !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), "clouds.yaml, "+line) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, want %s", text, err, line)
		}
	}
}
