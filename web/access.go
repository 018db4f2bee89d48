package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Access says who else than this host itself may see what Nodepool does not
// show: the status page, build logs and their last lines.
type Access struct {
	// Open lets everybody see it: the operator has chosen the address.
	Open bool
	// Token lets those see it who know it, as a bearer token or as the password
	// of any user; "" lets nobody.
	Token string
}

// guarded is for pages that Nodepool does not have.
func (h *handler) guarded(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Authorization")
		who, wrong := h.acts.Identify(r)
		switch {
		case h.trusted(r) || who.Name != "":
			next(w, r)
		case !h.knownHost(r):
			http.Error(w, "the Host header has a name that this daemon does not know; webapp.hosts in the configuration can list it", http.StatusMisdirectedRequest)
		case h.acts.LogsIn(r):
			h.acts.Login(w, r)
		case h.acts.Refuses(w, wrong):
		case h.Access.Token == "":
			http.Error(w, "this page answers requests from its own host only; webapp.token in the file with the secrets, "+
				"or webapp.listen_address in the configuration, opens it for others", http.StatusForbidden)
		default:
			w.Header().Set("WWW-Authenticate", `Basic realm="poolkeeper", charset="UTF-8"`)
			http.Error(w, "this page wants the token of webapp.token, as bearer token or as password", http.StatusUnauthorized)
		}
	}
}

// trusted reports whether a request may see what Nodepool does not show.
func (h *handler) trusted(r *http.Request) bool {
	return h.hasToken(r) || h.knownHost(r) && (h.Access.Open || ofThisHost(r))
}

// knownHost reports whether a request names us as its host. If the name of another site resolves to our address (DNS
// rebinding), a browser sends that name, and lets the pages of that site read the answer.
func (h *handler) knownHost(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if _, err := netip.ParseAddr(host); err == nil || host == "" { // no browser leaves it out
		return true
	}
	short, _, _ := strings.Cut(h.Host, ".")
	names := []string{"localhost", h.Host, short}
	if h.Config != nil {
		names = append(names, h.Config().WebApp.Hosts...)
	}
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, host) })
}

// hasToken reports whether a request carries the token.
func (h *handler) hasToken(r *http.Request) bool {
	if h.Access.Token == "" {
		return false
	}
	_, given, ok := r.BasicAuth()
	if kind, token, cut := strings.Cut(r.Header.Get("Authorization"), " "); cut && strings.EqualFold(kind, "Bearer") {
		given, ok = token, true
	}
	want, got := sha256.Sum256([]byte(h.Access.Token)), sha256.Sum256([]byte(given)) // of one length
	return ok && subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// ofThisHost reports whether a request comes from this host, and not through a
// proxy on it.
func ofThisHost(r *http.Request) bool {
	for name := range r.Header {
		if name == "Forwarded" || name == "Via" || strings.HasPrefix(name, "X-Forwarded-") {
			return false
		}
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	if from.Addr().Unmap().IsLoopback() {
		return true
	}
	// What comes from an address of ours to that address did not leave this host.
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	to, err := netip.ParseAddrPort(local.String())
	return err == nil && to.Addr().Unmap() == from.Addr().Unmap()
}
