package openstack

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"poolkeeper/configs/kit"
	"poolkeeper/providers"
	"poolkeeper/providers/openstack/clouds"
)

const (
	// endsEvery is how often Keystone is asked at most when a credential ends, and how
	// long a service's certificate is told of that we have not met again.
	endsEvery = 24 * time.Hour
	// endsPatience bounds that question: a log-in waits for it.
	endsPatience = 10 * time.Second
)

// ends knows when certificates and credentials end, from what passes by.
type ends struct {
	mu       sync.Mutex
	services map[string]met // by host and port
	anew     time.Time      // when connections were made anew last
	files    []providers.End
	login    []providers.End
}

// met is a certificate's end, and when it was seen last.
type met struct{ end, seen time.Time }

// Ends implements providers.Ender: certificates of the services that were asked within a day,
// those of clouds.yaml as they are in use, and what we log in with.
func (p *Provider) Ends() []providers.End {
	e := &p.ends
	e.mu.Lock()
	defer e.mu.Unlock()
	all := slices.Concat(e.files, e.login)
	for host, m := range e.services {
		if p.now().Sub(m.seen) <= endsEvery {
			all = append(all, providers.End{Use: providers.EndServer, Name: host, At: m.end})
		}
	}
	slices.SortFunc(all, func(a, b providers.End) int {
		return cmp.Or(cmp.Compare(a.Use, b.Use), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// answered looks at the connection of a call. Certificates that are not checked may end. True
// asks for new connections: what a service has put in place of its certificate, one that is
// kept open for weeks does not show.
func (e *ends) answered(req *http.Request, state *tls.ConnectionState, now time.Time) (renew bool) {
	if state == nil || len(state.VerifiedChains) == 0 {
		return false
	}
	end := chainsEnd(state.VerifiedChains)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.services == nil {
		e.services = map[string]met{}
	}
	e.services[req.URL.Host] = met{end, now}
	renew = !e.anew.IsZero() && now.Sub(e.anew) > endsEvery
	if renew || e.anew.IsZero() {
		e.anew = now
	}
	return renew
}

// chainsEnd is until when one of the chains holds, each of which ends with its first certificate.
func chainsEnd(chains [][]*x509.Certificate) (end time.Time) {
	for _, chain := range chains {
		first := slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
		if first.NotAfter.After(end) {
			end = first.NotAfter
		}
	}
	return end
}

// readFiles takes over the files of clouds.yaml as they are when a session begins, which uses
// them as long as it lasts.
func (e *ends) readFiles(cloud clouds.Cloud) {
	var files []providers.End
	for use, path := range map[providers.EndUse]string{providers.EndClient: cloud.Cert, providers.EndCA: cloud.CACert} {
		text, err := os.ReadFile(path)
		if path == "" || err != nil {
			continue
		}
		if end, there := kit.CertificatesEnd(text, use == providers.EndCA); there {
			files = append(files, providers.End{Use: use, Name: path, At: end})
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.files = files
}

// identity is what a token says of those who have it, beside what the library reads.
type identity struct {
	User struct {
		ID      string  `json:"id"`
		Name    string  `json:"name"`
		Expires *string `json:"password_expires_at"`
	} `json:"user"`
	Credential struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"application_credential"`
}

// loggedIn looks at a new token, and asks Keystone when the application credential ends that
// it comes of, unless that is known, or was asked for within a day. What cannot be found out
// stays unknown: some clouds let nobody read that.
func (p *Provider) loggedIn(ctx context.Context, cloud clouds.Cloud, client *gophercloud.ProviderClient) {
	token, ok := client.GetAuthResult().(tokens.CreateResult)
	var id identity
	if !ok || token.ExtractInto(&id) != nil {
		return
	}
	var login []providers.End
	if id.Credential.ID != "" {
		end := p.logins.end(ctx, accountOf(cloud), p.now, func() (time.Time, error) { return askEnd(ctx, client, id) })
		if !end.IsZero() {
			login = []providers.End{{Use: providers.EndCredential, Name: cmp.Or(id.Credential.Name, id.Credential.ID), At: end}}
		}
	} else if end := keystoneTime(id.User.Expires); !end.IsZero() && cloud.Auth.Password != "" {
		login = []providers.End{{Use: providers.EndPassword, Name: cmp.Or(id.User.Name, id.User.ID), At: end}}
	}
	p.ends.mu.Lock()
	defer p.ends.mu.Unlock()
	p.ends.login = login
}

// askEnd asks Keystone when an application credential ends; zero is never.
func askEnd(ctx context.Context, client *gophercloud.ProviderClient, id identity) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, endsPatience)
	defer cancel()
	keystone := &gophercloud.ServiceClient{ProviderClient: client, Endpoint: client.IdentityBase + "v3/"}
	var body struct {
		Credential struct {
			Expires *string `json:"expires_at"`
		} `json:"application_credential"`
	}
	resp, err := keystone.Get(ctx, keystone.ServiceURL("users", id.User.ID, "application_credentials", id.Credential.ID), &body, nil)
	if err != nil {
		return time.Time{}, err
	}
	return keystoneTime(body.Credential.Expires), resp.Body.Close()
}

// keystoneTime reads a time of Keystone, which is of UTC with or without a Z; zero is none.
func keystoneTime(text *string) time.Time {
	if text == nil {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if at, err := time.Parse(layout, *text); err == nil {
			return at
		}
	}
	return time.Time{}
}
