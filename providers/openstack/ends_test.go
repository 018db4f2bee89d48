package openstack

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/providers"
)

// issuer makes certificates.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue makes a certificate that ends at a time; by nil it is a CA of its own.
func issue(t *testing.T, by *issuer, ca bool, end time.Time) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(end.Unix()), Subject: pkix.Name{CommonName: end.String()}, NotBefore: time.Now().Add(-time.Hour), NotAfter: end,
		IsCA: ca, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if by == nil {
		by = &issuer{cert: template, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{cert, key}
}

// write writes the certificates and the first one's key into a file.
func write(t *testing.T, list ...*issuer) string {
	t.Helper()
	var text []byte
	for _, i := range list {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.cert.Raw})...)
	}
	key, err := x509.MarshalECPrivateKey(list[0].key)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key})...)
	path := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ended is what a provider tells, one "use name day" each; days are counted from a begin.
func ended(p *Provider, begin time.Time) []string {
	var list []string
	for _, end := range p.Ends() {
		list = append(list, fmt.Sprintf("%s %s %d", end.Use, filepath.Base(end.Name), int(end.At.Sub(begin).Hours()/24)))
	}
	return list
}

// Mistakes: the end of the first certificate alone, while the one that signed it ends earlier; a
// service's new certificate that is not seen, as the connection is an old one, so that an alarm
// rings for ever; a bundle of CAs that rings for one in it that has ended; a connection more.
func TestCertificatesEnd(t *testing.T) {
	begin := time.Now()
	day := func(n int) time.Time { return begin.Add(time.Duration(n)*24*time.Hour + time.Hour) }
	root := issue(t, nil, true, day(900))
	between := issue(t, root, true, day(10))
	leaf := issue(t, between, false, day(300))
	var serving atomic.Pointer[tls.Config]
	serve := func(leaf, between *issuer) {
		serving.Store(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.cert.Raw, between.cert.Raw}, PrivateKey: leaf.key}}})
	}
	serve(leaf, between)
	s := newStubOver(t, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return serving.Load(), nil }})
	host := s.Listener.Addr().String()
	clock := &settable{now: begin}
	ours, authorities := write(t, issue(t, root, false, day(40))), write(t, root, issue(t, nil, true, day(2)))
	p := s.openWith(t, section(), s.clouds(t, fmt.Sprintf("    cacert: %s\n    cert: %s\n", authorities, ours)))
	p.now = clock.read
	look := func() {
		t.Helper()
		if _, err := p.ListNodes(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want ...string) {
		t.Helper()
		if got := ended(p, begin); !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	expect()
	look()
	calls := s.count("")
	expect("ca file.pem 900", "client file.pem 40", "server "+host+" 10")
	if s.count("") != calls {
		t.Error("the cloud was asked for what ends")
	}
	serve(issue(t, root, false, day(400)), between)
	clock.move(25 * time.Hour)
	look() // over the old connection, which is closed then
	look()
	expect("ca file.pem 900", "client file.pem 40", "server "+host+" 400")
	clock.move(25 * time.Hour)
	expect("ca file.pem 900", "client file.pem 40")
}

// What is not checked may end.
func TestCertificatesThatAreNotChecked(t *testing.T) {
	s := newStubOver(t, &tls.Config{})
	p := s.openWith(t, section(), s.clouds(t, "    verify: false\n"))
	if _, err := p.ListNodes(t.Context()); err != nil || len(p.Ends()) > 0 {
		t.Errorf("told %v, %v", p.Ends(), err)
	}
}

// Mistakes: Keystone asked with each log-in, by each provider of an account, or again and again
// where it refuses; a refusal that costs the log-in; an end that is taken for never, or never
// for long ago.
func TestCredentialEnds(t *testing.T) {
	for name, test := range map[string]struct {
		status     int
		end        any
		want       []string
		askedLater int // after 25 hours
	}{
		"told":           {http.StatusOK, "2031-05-06T07:08:09.000000", []string{"2031-05-06T07:08:09Z"}, 1},
		"told with zone": {http.StatusOK, "2031-05-06T07:08:09.000000Z", []string{"2031-05-06T07:08:09Z"}, 1},
		"never":          {http.StatusOK, nil, nil, 1},
		"refused":        {http.StatusForbidden, nil, nil, 2},
		"not there":      {http.StatusNotFound, nil, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.mux.HandleFunc("GET /identity/v3/users/user/application_credentials/c1", func(w http.ResponseWriter, _ *http.Request) {
				reply(w, test.status, map[string]any{"application_credential": map[string]any{"id": "c1", "expires_at": test.end}})
			})
			path := filepath.Join(t.TempDir(), "clouds.yaml")
			text := "clouds: {stub: {region_name: north, auth: {auth_url: " + s.URL + "/identity/v3, application_credential_id: c1, application_credential_secret: word}}}\n"
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			env := func(name string) (string, bool) { return path, name == "OS_CLIENT_CONFIG_FILE" }
			clock, logins := &settable{now: time.Now()}, &Logins{}
			var all []*Provider
			for range 2 {
				p := s.openWith(t, section(), env)
				p.logins, p.now = logins, clock.read
				all = append(all, p)
			}
			use := func(asked int) {
				t.Helper()
				for _, p := range all {
					s.expire()
					if _, err := p.ListNodes(t.Context()); err != nil {
						t.Fatal(err)
					}
					var got []string
					for _, end := range p.Ends() {
						if end.Use != providers.EndCredential || end.Name != "nodes" {
							t.Errorf("told %+v", end)
						}
						got = append(got, end.At.Format(time.RFC3339))
					}
					if !slices.Equal(got, test.want) {
						t.Errorf("told %q, want %q", got, test.want)
					}
				}
				if n := s.count("application_credentials"); n != asked {
					t.Errorf("asked %d times, want %d", n, asked)
				}
			}
			use(1)
			use(1)
			clock.move(25 * time.Hour)
			use(test.askedLater)
		})
	}
}

// A password's end comes with the token.
func TestPasswordEnds(t *testing.T) {
	s := newStub(t)
	s.passwordEnds = "2031-05-06T07:08:09.000000"
	p := s.open(t, section())
	if _, err := p.ListNodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(p.Ends()); !strings.Contains(got, "{password ci 2031-05-06 07:08:09") || s.count("application_credentials") > 0 {
		t.Errorf("told %s", got)
	}
}
