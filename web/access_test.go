package web

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/test/webtest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/history"
	"poolkeeper/zkmodel/recipe"
)

// Who sees build logs, their last lines and the status page, and who only what
// Nodepool shows, too.
func TestAccess(t *testing.T) {
	logs := newLogs(t, "the log")
	past := history.New(filepath.Join(t.TempDir(), "history.db"), history.DefaultLimits, hclog.NewNullLogger())
	if err := past.Open(); err != nil {
		t.Fatal(err)
	}
	defer past.Close()
	build := zkmodel.DecodeBuild("image", "0000000001", []byte(`{"state": "failed", "tail": "the last lines"}`), recipe.Stat{})
	images := []*zkmodel.Image{{Name: "image", Builds: []*zkmodel.BuildTree{{Build: build}}}}
	const token = "0123456789abcdef"
	for name, test := range map[string]struct {
		access  Access
		from    string
		headers []string
		status  int // of a guarded page
	}{
		"this host":                 {Access{}, "127.0.0.1:5", nil, 200},
		"this host by IPv6":         {Access{}, "[::1]:5", nil, 200},
		"this host, mapped":         {Access{}, "[::ffff:127.0.0.1]:5", nil, 200},
		"this host by its address":  {Access{}, "192.0.2.80:5", nil, 200},
		"another host":              {Access{}, "192.0.2.7:5", nil, 403},
		"what has no address":       {Access{}, "@", nil, 403},
		"a proxy here":              {Access{}, "127.0.0.1:5", []string{"X-Forwarded-For", "192.0.2.7"}, 403},
		"another proxy here":        {Access{}, "127.0.0.1:5", []string{"Forwarded", "for=192.0.2.7"}, 403},
		"a third proxy here":        {Access{}, "127.0.0.1:5", []string{"Via", "1.1 proxy"}, 403},
		"a fourth":                  {Access{}, "127.0.0.1:5", []string{"x-forwarded-host", "evil"}, 403},
		"an address that was given": {Access{Open: true}, "192.0.2.7:5", nil, 200},
		"no token":                  {Access{Token: token}, "192.0.2.7:5", nil, 401},
		"the token":                 {Access{Token: token}, "192.0.2.7:5", []string{"Authorization", "Bearer " + token}, 200},
		"the token, by a proxy":     {Access{Token: token}, "127.0.0.1:5", []string{"Via", "x", "Authorization", "bearer " + token}, 200},
		"the token as password":     {Access{Token: token}, "192.0.2.7:5", []string{"Authorization", "Basic YW55Ym9keTowMTIzNDU2Nzg5YWJjZGVm"}, 200},
		"a wrong token":             {Access{Token: token}, "192.0.2.7:5", []string{"Authorization", "Bearer " + token + "0"}, 401},
		"an empty one":              {Access{Token: token}, "192.0.2.7:5", []string{"Authorization", "Bearer "}, 401},
		"an empty one for none":     {Access{}, "192.0.2.7:5", []string{"Authorization", "Bearer "}, 403},
		"this host with a token":    {Access{Token: token}, "127.0.0.1:5", nil, 200},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandler(Options{Access: test.access, Logs: logs, Tree: still(images, nil, nil), History: past}).routes()
			ask := func(path string) *httptest.ResponseRecorder {
				local := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 80), Port: 8006}
				r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(local)), http.MethodGet, path, nil)
				r.Host, r.RemoteAddr = "192.0.2.80:8006", test.from
				r.Header.Set("Accept", "application/json, */*;q=0.1")
				for i := 0; i < len(test.headers); i += 2 {
					r.Header.Set(test.headers[i], test.headers[i+1])
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w
			}
			for _, path := range []string{"/attention", "/log/image-0000000001", "/log/image-0000000001?follow=1", "/build-log/image-0000000001", "/history"} {
				w := ask(path)
				if w.Code != test.status {
					t.Errorf("%s: %d, want %d: %s", path, w.Code, test.status, w.Body)
				}
				if shown := strings.Contains(w.Body.String(), "the l"); shown != (test.status == 200) {
					t.Errorf("%s: %s", path, w.Body)
				}
			}
			if w := ask("/history.json"); w.Code != test.status || strings.Contains(w.Body.String(), "entries") != (test.status == 200) {
				t.Errorf("/history.json: %d %s", w.Code, w.Body)
			}
			for _, path := range []string{"/ready", "/image-list", "/node-list"} {
				if w := ask(path); w.Code != http.StatusOK {
					t.Errorf("%s: %d, want what Nodepool shows to everybody", path, w.Code)
				}
			}
			if w := ask("/ready"); strings.Contains(w.Body.String(), `"checks"`) != (test.status == 200) {
				t.Errorf("/ready: %s", w.Body)
			}
			if w := ask("/dib-image-list"); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "the last lines") != (test.status == 200) {
				t.Errorf("/dib-image-list: %d %s", w.Code, w.Body)
			}
		})
	}
}

// A page of another site whose name resolves to our address must neither read pages nor act, whatever opens them by the address
// of the client; a token opens them by any name.
func TestForeignHostsAreRejected(t *testing.T) {
	config := &configs.Config{WebApp: configs.WebApp{
		Hosts:     []string{"pool.example.org"},
		ProxyUser: &configs.ProxyUser{Header: "X-Remote-User", From: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, May: configs.MayDestroy},
	}}
	o := Options{
		Host: "nb01.example.net", Config: func() *configs.Config { return config }, Operator: &doer{}, Tree: still(nil, nil, nil),
		Access: Access{Token: "0123456789abcdef"},
	}
	h := newHandler(o).routes()
	ask := func(method, path, host string, headers ...string) answer {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("image=debian"))
		r.RemoteAddr, r.Host = "127.0.0.1:5", host
		r.Header.Set("Origin", "http://"+host)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		return webtest.Serve(h, r)
	}
	bob := []string{"X-Remote-User", "bob"}
	for _, host := range []string{"localhost:8005", "LOCALHOST", "127.0.0.1:8005", "[::1]:8005", "192.0.2.80", "nb01.example.net:8005", "nb01.example.net.", "nb01", "pool.example.org"} {
		ask(http.MethodGet, "/attention", host).Expect(t, http.StatusOK)
		if a := ask(http.MethodGet, "/act/image-build?image=debian", host, bob...); a.Status != http.StatusOK {
			t.Errorf("%s: form %d %s", host, a.Status, a.Body)
		}
	}
	for _, host := range []string{"evil.example:8005", "evil.example", "nb01.example.net.evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "nb02"} {
		for _, headers := range [][]string{nil, bob, {"Authorization", "Bearer wrong"}, {"X-Remote-User", "bob", "Authorization", "Basic Ym9iOnc="}} {
			if a := ask(http.MethodGet, "/attention", host, headers...); a.Status == http.StatusOK {
				t.Errorf("%s with %q reads a page", host, headers)
			}
			if a := ask(http.MethodGet, "/act/image-build?image=debian", host, headers...); a.Status == http.StatusOK {
				t.Errorf("%s with %q gets a form: %d", host, headers, a.Status)
			}
		}
		ask(http.MethodGet, "/image-list", host).Expect(t, http.StatusOK) // as Nodepool's
		ask(http.MethodGet, "/attention", host, "Authorization", "Bearer 0123456789abcdef").Expect(t, http.StatusOK)
	}
}
