package configs

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
)

// WebApp is where the status page listens, who may see more than Nodepool shows, and who may do something there.
type WebApp struct {
	Port          int
	ListenAddress string
	// AddressWritten says that the file names the address: it is no default.
	AddressWritten bool
	// Hosts are further names that clients may use for this daemon, as that of a proxy.
	Hosts []string
	// Token is the secure file's, which opens build logs and the status page to
	// other hosts; "" is none.
	Token   string
	History History
	Tokens  []WebToken // of those who may do something
	// ProxyUser says which proxy names its users; nil is none.
	ProxyUser *ProxyUser
}

// WebToken is a token by its name, of which only the hash is written down.
type WebToken struct {
	Name string // of who has it
	Hash string // as TokenHash makes it
	May  May
}

// Is reports whether a token is this one, in a time that does not tell how much of it is right.
func (t WebToken) Is(token string) bool {
	return subtle.ConstantTimeCompare([]byte(TokenHash(token)), []byte(t.Hash)) == 1 && token != ""
}

// hashPrefix begins the hash of a token.
const hashPrefix = "sha256:"

// TokenHash is what the configuration has of a token. Tokens are made at random, of 32 bytes: none can be
// found by trying, so that a plain hash is enough.
func TokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// ProxyUser is a proxy that authenticates: it writes the name of its user into a header, and
// lets no client do so.
type ProxyUser struct {
	Header string
	From   []netip.Prefix // the addresses of the proxy; from elsewhere the header means nothing
	May    May            // of a user that Users does not name; "" is nothing
	Users  []ProxyUserMay
}

// ProxyUserMay is what one user may do.
type ProxyUserMay struct {
	Name string
	May  May
}

// Of is what a user may do; "" is nothing.
func (p *ProxyUser) Of(user string) May {
	if at := slices.IndexFunc(p.Users, func(u ProxyUserMay) bool { return u.Name == user }); at >= 0 {
		return p.Users[at].May
	}
	return p.May
}

// Acts reports whether there is anybody who may do something on a page, or see it by a name.
func (w *WebApp) Acts() bool { return len(w.Tokens) > 0 || w.ProxyUser != nil }

// History says where a daemon keeps what it saw end; without a folder it keeps nothing.
type History struct {
	Dir  string // where it is not absolute, in the state directory of the daemon's unit
	Days int    // that entries stay at most
	Size int64  // of the file, in bytes, at most
}

func (l *loader) webApp(v value) {
	web := &l.cfg.WebApp
	have := v.decode("webapp", fields{
		"port":           exact(&web.Port, 0, 65535), // 0 takes a free one
		"listen_address": text(&web.ListenAddress),
		"hosts":          texts(&web.Hosts),
		"history":        l.history,
		"tokens":         unique(refused, &web.Tokens, func(t WebToken) string { return t.Name }, webToken),
		"proxy-user":     l.proxyUser,
	})
	web.AddressWritten = have["listen_address"]
	web.Tokens = slices.DeleteFunc(web.Tokens, func(t WebToken) bool { return t.Hash == "" || t.May == "" }) // what is wrong opens nothing
}

// leastHistory is the least size of a file of history, in bytes.
const leastHistory = 1 << 20

func (l *loader) history(v value) {
	h := &l.cfg.WebApp.History
	*h = History{Days: 30, Size: 512 << 20}
	have := v.decode("history", fields{
		"dir":  notEmpty(&h.Dir),
		"days": number(&h.Days, 1, 3650),
		"size": func(v value) {
			size(&h.Size)(v)
			if h.Size < leastHistory {
				v.fail("%s is too small, the least is 1M", v.describe())
			}
		},
	})
	v.require(have, "dir")
}

// webToken decodes a token. One that is wrong opens nothing.
func webToken(v value) WebToken {
	var t WebToken
	have := v.decode("webapp token", fields{
		"name": checkedName("token", &t.Name),
		"hash": tokenHash(&t.Hash),
		"may":  may(&t.May),
	})
	v.require(have, "name", "hash", "may")
	return t
}

var hashPattern = regexp.MustCompile(`^` + hashPrefix + `[0-9a-f]{64}$`)

// tokenHash decodes the hash of a token. What is none is not quoted: it may be the token.
func tokenHash(out *string) decodeFunc {
	return func(v value) {
		if v.says(func() Shape { return Shape{Type: Text, Pattern: hashPattern.String()} }) {
			return
		}
		s, ok := v.text()
		switch {
		case !ok:
		case !hashPattern.MatchString(s):
			v.fail("it is not the hash of a token as `poolkeeper token create` prints it, sha256: and 64 hex digits")
		case s == TokenHash(""):
			v.fail("it is the hash of no token at all, of an empty text")
		default:
			*out = s
		}
	}
}

// may decodes what a person is allowed.
func may(out *May) decodeFunc {
	return func(v value) {
		word := string(*out)
		oneOf(&word, string(MayRead), string(MayOperate), string(MayDestroy))(v)
		*out = May(word)
	}
}

// proxyUser decodes the proxy that authenticates.
func (l *loader) proxyUser(v value) {
	p := &ProxyUser{}
	have := v.decode("proxy-user", fields{
		"header": headerName(&p.Header),
		"from":   networks(&p.From),
		"may":    may(&p.May),
		"users": unique(refused, &p.Users, func(u ProxyUserMay) string { return u.Name }, func(v value) ProxyUserMay {
			var u ProxyUserMay
			have := v.decode("proxy user", fields{"name": notEmpty(&u.Name), "may": may(&u.May)})
			v.require(have, "name", "may")
			return u
		}),
	})
	v.require(have, "header", "from")
	if have["header"] && have["from"] && p.Header != "" && len(p.From) > 0 {
		l.cfg.WebApp.ProxyUser = p
	}
}

var headerPattern = regexp.MustCompile("^[A-Za-z0-9][A-Za-z0-9-]{0,99}$")

// takenHeaders say something else.
var takenHeaders = []string{"Authorization", "Cookie", "Host", "Origin", "Referer", "Accept", "User-Agent", "Content-Type", "Content-Length"}

func headerName(out *string) decodeFunc {
	return func(v value) {
		if v.says(func() Shape { return Shape{Type: Text, Pattern: headerPattern.String()} }) {
			return
		}
		s, ok := v.text()
		if name := http.CanonicalHeaderKey(s); ok {
			if !headerPattern.MatchString(s) || slices.Contains(takenHeaders, name) {
				v.fail("expected the name of a header that the proxy alone sets, as X-Remote-User, got %s", v.describe())
				return
			}
			*out = name
		}
	}
}

// networks decodes addresses and networks.
func networks(out *[]netip.Prefix) decodeFunc {
	return func(v value) {
		var list []string
		texts(&list)(v)
		for _, s := range list {
			p, err := netip.ParsePrefix(s)
			if a, of := netip.ParseAddr(s); of == nil {
				p, err = netip.PrefixFrom(a, a.BitLen()), nil
			}
			if err != nil || p != p.Masked() || p.Bits() == 0 {
				v.fail("%q is no address and no network, as 127.0.0.1 or 10.1.2.0/24", s)
				continue
			}
			*out = append(*out, p)
		}
		if len(list) == 0 && v.node != nil && len(*out) == 0 {
			v.fail("it names no address: without any, the header is believed from nowhere")
		}
	}
}
