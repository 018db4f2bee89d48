package actions

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/time/rate"

	"poolkeeper/configs"
)

// Who is the one who asks.
type Who struct {
	Name string // "" is nobody that is known
	May  configs.May
	Via  string // how that is known: token, session, proxy
	// form is what forms have to carry: what asks by itself, as a browser does with cookies, could be made
	// to by another page. "" is where nothing does.
	form string
	// reads says that the browser may have been made to ask, and no form can tell: it may only read.
	reads bool
}

// Identify says who asks. wrong says why what was shown opens nothing; "" where nothing was shown.
func (d *Desk) Identify(r *http.Request) (who Who, wrong string) {
	if d == nil {
		return Who{}, ""
	}
	access := d.Access()
	if !access.Acts() {
		return Who{}, "" // nobody counts what opens nothing
	}
	if kind, token := credentials(r); token != "" {
		if kind == "basic" && d.KnownHost(r) { // a proxy that asks for passwords itself hands on what its client sent
			if who, wrong := d.fromProxy(r, access.ProxyUser); who.Name != "" || wrong != "" {
				return who, wrong
			}
		}
		if !d.door.open(r) {
			return Who{}, tooMany
		}
		for _, t := range access.Tokens {
			if t.Is(token) {
				return Who{Name: t.Name, May: t.May, Via: "token", reads: kind == "basic"}, ""
			}
		}
		if access.Token == "" || configs.TokenHash(access.Token) != configs.TokenHash(token) {
			d.door.wrong(r)
		}
		return Who{}, "no such token"
	}
	if !d.KnownHost(r) {
		return Who{}, foreignHost
	}
	if who, ok := d.fromSession(r, access); ok {
		return who, ""
	}
	return d.fromProxy(r, access.ProxyUser)
}

// credentials are what the header Authorization has.
func credentials(r *http.Request) (kind, token string) {
	if _, password, ok := r.BasicAuth(); ok {
		return "basic", password
	}
	if kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(kind, "Bearer") {
		return "bearer", token
	}
	return "", ""
}

// fromSession is who has logged in; whose token is gone from the configuration is not any more.
func (d *Desk) fromSession(r *http.Request, access *configs.WebApp) (Who, bool) {
	cookie, err := r.Cookie(d.cookie())
	if err != nil {
		return Who{}, false
	}
	s, ok := d.sessions.find(cookie.Value)
	if !ok {
		return Who{}, false
	}
	for _, t := range access.Tokens {
		if t.Name == s.name && t.Hash == s.hash {
			return Who{Name: t.Name, May: t.May, Via: "session", form: d.sign("session", cookie.Value)}, true
		}
	}
	return Who{}, false
}

// foreignHost is why neither a session nor a proxy opens anything.
const foreignHost = "the Host header has a name that this daemon does not know; webapp.hosts in the configuration can list it"

// fromProxy is whom a proxy names.
func (d *Desk) fromProxy(r *http.Request, p *configs.ProxyUser) (who Who, wrong string) {
	if p == nil || !proxied(r, p) {
		return Who{}, ""
	}
	names := r.Header.Values(p.Header)
	switch {
	case len(names) == 0:
		return Who{}, ""
	case len(names) > 1 || configs.CheckName("user", names[0]) != nil || strings.ContainsFunc(names[0], unicode.IsControl):
		return Who{}, "the proxy's header " + p.Header + " has no name"
	}
	may := p.Of(names[0])
	if may == "" {
		return Who{}, "user " + names[0] + " may do nothing here"
	}
	return Who{Name: names[0], May: may, Via: "proxy", form: d.sign("proxy", names[0])}, ""
}

// proxied reports whether a request comes from an address of the proxy.
func proxied(r *http.Request, p *configs.ProxyUser) bool {
	from := address(r)
	for _, network := range p.From {
		if network.Contains(from) {
			return true
		}
	}
	return false
}

// address is where a request comes from.
func address(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	at, _ := netip.ParseAddr(host) // none is in no network
	return at.Unmap().WithZone("")
}

// sign is what forms of one person carry, until the daemon ends.
func (d *Desk) sign(via, of string) string {
	mac := hmac.New(sha256.New, d.key)
	_, _ = mac.Write([]byte(via + "|" + of)) // a hash takes all
	return hex.EncodeToString(mac.Sum(nil))
}

// carries reports whether a form carries what it has to.
func (w Who) carries(form string) bool { return hmac.Equal([]byte(w.form), []byte(form)) }

// Tokens are not to be found by trying; this keeps the log, and the processor, from those who try.
const (
	wrongBurst = 10              // wrong tokens of one address at once
	wrongEvery = 6 * time.Second // and then one each
	mostDoors  = 1000            // addresses that are remembered

	tooMany = "too many wrong tokens from there; wait a minute"
)

// door counts wrong tokens.
type door struct {
	now func() time.Time
	mu  sync.Mutex
	by  map[netip.Prefix]*rate.Limiter
}

// limiter is that of where a request comes from; the caller holds the lock.
func (d *door) limiter(r *http.Request) *rate.Limiter {
	from := address(r)
	bits := min(64, from.BitLen()) // who has an address of IPv6 has all of its network
	at, _ := from.Prefix(bits)
	if len(d.by) >= mostDoors && d.by[at] == nil || d.by == nil {
		d.by = map[netip.Prefix]*rate.Limiter{}
	}
	if d.by[at] == nil {
		d.by[at] = rate.NewLimiter(rate.Every(wrongEvery), wrongBurst)
	}
	return d.by[at]
}

// open reports whether tokens from there are looked at.
func (d *door) open(r *http.Request) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.limiter(r).TokensAt(d.now()) >= 1
}

func (d *door) wrong(r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limiter(r).AllowN(d.now(), 1)
}
