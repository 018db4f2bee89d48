package web

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/test/webtest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/action"
	"poolkeeper/zkmodel/history"
)

// doer is a site that notes what it is asked for.
type doer struct {
	did   []string
	told  []action.Audit
	fails error
}

func (d *doer) Do(_ context.Context, who string, o action.Order) (said, notes []string, err error) {
	d.did = append(d.did, who+" "+o.Action+" "+o.Target())
	return []string{o.Target() + " is <done>"}, []string{"a note"}, d.fails
}

func (d *doer) Ltime(context.Context) (int64, error) { return 0, nil }

func (d *doer) Tell(_ context.Context, a action.Audit) { d.told = append(d.told, a) }

// tokens of the tests, by what they may.
var tokens = map[configs.May]string{configs.MayRead: "token-reads", configs.MayOperate: "token-operates", configs.MayDestroy: "token-destroys"}

// desk is a server with tokens of each kind and a proxy at 10.0.0.9.
type desk struct {
	*doer

	cfg     *configs.Config
	log     bytes.Buffer
	handler http.Handler
	past    *history.Store
}

// newDesk makes one; kept is where it keeps what was done, or nil.
func newDesk(t *testing.T, kept *history.Store) *desk {
	t.Helper()
	d := &desk{doer: &doer{}, cfg: &configs.Config{}, past: kept}
	for may, token := range tokens {
		d.cfg.WebApp.Tokens = append(d.cfg.WebApp.Tokens, configs.WebToken{Name: "who-" + string(may), Hash: configs.TokenHash(token), May: may})
	}
	d.cfg.WebApp.ProxyUser = &configs.ProxyUser{
		Header: "X-Remote-User", From: []netip.Prefix{netip.MustParsePrefix("10.0.0.9/32")}, May: configs.MayRead,
		Users: []configs.ProxyUserMay{{Name: "bob", May: configs.MayDestroy}},
	}
	tree := still([]*zkmodel.Image{{Name: "debian", Builds: []*zkmodel.BuildTree{{
		Build:   &zkmodel.Build{Image: "debian", ID: "0000000001", State: zkmodel.BuildReady},
		Uploads: []*zkmodel.Upload{{UploadKey: zkmodel.UploadKey{Image: "debian", Build: "0000000001", Provider: "north", ID: "0000000002"}, State: zkmodel.UploadReady}},
	}}}}, []*zkmodel.Node{{ID: "0000000007", Provider: "north", State: zkmodel.NodeInUse, AllocatedTo: "100-1"}}, nil)
	d.handler = newHandler(Options{
		Daemon: "launcher", Tree: tree, Config: func() *configs.Config { return d.cfg }, Operator: d.doer, History: d.past,
		Logger: hclog.New(&hclog.LoggerOptions{Output: &d.log, Level: hclog.Info}),
	}).routes()
	return d
}

// post sends a form from an address; headers are pairs.
func (d *desk) post(t *testing.T, path, from string, form url.Values, headers ...string) answer {
	t.Helper()
	return d.send(t, http.MethodPost, path, from, form.Encode(), headers...)
}

func (d *desk) send(t *testing.T, method, path, from, body string, headers ...string) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Host, r.RemoteAddr = "localhost", from
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return webtest.Serve(d.handler, r)
}

// whole is a form with all that any action wants.
func whole(a action.Action) url.Values {
	form := url.Values{"sure": {"yes"}, "reason": {"because"}}
	for _, kind := range a.Wants {
		form.Set(kind, map[string]string{
			"image": "debian", "build": "debian-0000000001", "upload": "0000000002", "provider": "north", "node": "0000000007", "request": "100-1",
		}[kind])
	}
	return form
}

// Mistakes: an action for all who reach the page; one that a lesser right does; one that another page has a browser
// do; a header that is believed from everywhere; one of which no line says who, what, from where; a token in the log.
func TestWhoMayActAndWhoMayNot(t *testing.T) {
	const here, far, proxy = "127.0.0.1:5", "192.0.2.7:5", "10.0.0.9:5"
	d := newDesk(t, nil)
	for _, a := range action.All() {
		for name, tc := range map[string]struct {
			from    string
			may     configs.May // of who asks; "" has nothing done
			status  int         // where that is not what may says
			via     string
			headers []string
		}{
			"nobody, this host":       {from: here, status: 401},
			"nobody, another host":    {from: far, status: 401},
			"a wrong token":           {from: "192.0.2.99:5", status: 401, headers: []string{"Authorization", "Bearer x" + a.Name}},
			"a token that reads":      {from: far, may: configs.MayRead, headers: []string{"Authorization", "Bearer " + tokens[configs.MayRead]}},
			"a token that operates":   {from: far, may: configs.MayOperate, headers: []string{"Authorization", "Bearer " + tokens[configs.MayOperate]}},
			"a token that destroys":   {from: far, may: configs.MayDestroy, headers: []string{"Authorization", "bearer " + tokens[configs.MayDestroy]}},
			"another origin":          {from: far, status: 403, headers: []string{"Authorization", "Bearer " + tokens[configs.MayDestroy], "Origin", "https://bad.example"}},
			"another site":            {from: far, status: 403, headers: []string{"Authorization", "Bearer " + tokens[configs.MayDestroy], "Sec-Fetch-Site", "cross-site"}},
			"a browser's password":    {from: far, status: 403, headers: []string{"Authorization", basic(tokens[configs.MayDestroy])}},
			"a proxy without form":    {from: proxy, status: 403, headers: []string{"X-Remote-User", "bob"}},
			"a header from elsewhere": {from: far, status: 401, headers: []string{"X-Remote-User", "bob"}},
			"a header from this host": {from: here, status: 401, headers: []string{"X-Remote-User", "bob"}},
		} {
			t.Run(a.Name+"/"+name, func(t *testing.T) {
				d.did, d.told = nil, nil
				d.log.Reset()
				got := d.post(t, "/act/"+a.Name, tc.from, whole(a), tc.headers...)
				want := tc.status
				if want == 0 {
					want = map[bool]int{true: 200, false: 403}[tc.may.Covers(a.Needs)]
				}
				done := want == 200
				if strings.HasPrefix(name, "a wrong") && got.Status == http.StatusTooManyRequests {
					want = got.Status // too many of them by now
				}
				if got.Status != want || (len(d.did) == 1) != done {
					t.Errorf("status %d, want %d; done %q: %s", got.Status, want, d.did, got.Body)
				}
				line := map[bool]string{true: "Action done", false: "Action refused, nothing was changed"}[done]
				if text := d.log.String(); !strings.Contains(text, line) || !strings.Contains(text, "action="+a.Name+" client="+tc.from) {
					t.Errorf("the audit line is %q", text)
				}
				for _, token := range tokens {
					if strings.Contains(d.log.String(), token) {
						t.Errorf("the log has a token: %s", d.log.String())
					}
				}
				if known := tc.may != "" || strings.HasPrefix(name, "another") || strings.Contains(name, "password") || strings.HasPrefix(name, "a proxy"); known != (len(d.told) == 1) {
					t.Errorf("told %v", d.told)
				}
			})
		}
	}
}

func basic(token string) string {
	r, _ := http.NewRequest(http.MethodGet, "/", nil) //nolint:noctx // only its header is used
	r.SetBasicAuth("any", token)
	return r.Header.Get("Authorization")
}

var hidden = regexp.MustCompile(`name="form" value="([0-9a-f]+)"`)

// formOf is what the form at a path carries.
func (d *desk) formOf(t *testing.T, path, from string, headers ...string) string {
	t.Helper()
	got := d.send(t, http.MethodGet, path, from, "", append(headers, "Accept", "text/html")...)
	found := hidden.FindStringSubmatch(got.Body)
	if got.Status != http.StatusOK || found == nil {
		t.Fatalf("%s: %d %s", path, got.Status, got.Body)
	}
	return found[1]
}

// A person in a browser without scripts. Mistakes: a session that outlives its token or its end; a form of one person
// that another can send; what destroys is done by a GET, or without a look at what goes; text of records that becomes markup.
func TestLogInAndAct(t *testing.T) {
	const far = "192.0.2.7:5"
	past := history.New(filepath.Join(t.TempDir(), "launcher.db"), history.DefaultLimits, hclog.NewNullLogger())
	if err := past.Open(); err != nil {
		t.Fatal(err)
	}
	defer past.Close()
	d := newDesk(t, past)
	if got := d.send(t, http.MethodGet, "/images/debian", far, "", "Accept", "text/html"); got.Status != http.StatusSeeOther || got.Header.Get("Location") != "/login?to=%2Fimages%2Fdebian" {
		t.Fatalf("from afar: %d %s", got.Status, got.Header.Get("Location"))
	}
	login := func(token string, headers ...string) answer {
		return d.post(t, "/login", far, url.Values{"token": {token}, "to": {"/images/debian"}}, append(headers, "Accept", "text/html")...)
	}
	login("wrong").Expect(t, http.StatusUnauthorized)
	login(tokens[configs.MayDestroy], "Origin", "https://bad.example").Expect(t, http.StatusForbidden)
	in := login(tokens[configs.MayDestroy], "X-Forwarded-Proto", "https")
	in.Expect(t, http.StatusSeeOther)
	set := in.Header.Get("Set-Cookie")
	for _, want := range []string{"poolkeeper-launcher=", "HttpOnly", "SameSite=Strict", "Secure", "Max-Age=28800"} {
		if !strings.Contains(set, want) {
			t.Errorf("the cookie %q has no %s", set, want)
		}
	}
	if in.Header.Get("Location") != "/images/debian" || strings.Contains(set, tokens[configs.MayDestroy]) {
		t.Errorf("on to %q with %q", in.Header.Get("Location"), set)
	}
	cookie, _, _ := strings.Cut(set, ";")
	browser := []string{"Cookie", cookie, "Accept", "text/html"}

	page := d.send(t, http.MethodGet, "/builds/debian-0000000001", far, "", browser...).Body
	for _, want := range []string{"who-destroy", "/act/dib-image-delete?build=debian-0000000001", "/act/image-delete?build=debian-0000000001&amp;provider=north&amp;upload=0000000002"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of the build has no %s", want)
		}
	}
	const path = "/act/node-delete?node=0000000007"
	form := d.formOf(t, path, far, browser...)
	if body := d.send(t, http.MethodGet, path, far, "", browser...).Body; !strings.Contains(body, "node 0000000007 of north is in-use, for request 100-1") || len(d.did) > 0 {
		t.Errorf("a look at what goes: done %q, %s", d.did, body)
	}
	// From the proxy bob's form is another.
	if other := d.formOf(t, path, "10.0.0.9:5", "X-Remote-User", "bob"); other == form {
		t.Error("two people have one form")
	}
	send := func(form url.Values) answer { return d.post(t, "/act/node-delete", far, form, browser...) }
	send(url.Values{"node": {"0000000007"}, "sure": {"yes"}, "form": {"0"}}).Expect(t, http.StatusForbidden)
	send(url.Values{"node": {"0000000007"}, "form": {form}}).Expect(t, http.StatusOK) // is asked
	send(url.Values{"node": {"../x"}, "form": {form}}).Expect(t, http.StatusBadRequest)
	if len(d.did) > 0 {
		t.Fatalf("done %q", d.did)
	}
	done := send(url.Values{"node": {"0000000007"}, "sure": {"yes"}, "form": {form}})
	done.Expect(t, http.StatusSeeOther)
	to := done.Header.Get("Location")
	if body := d.send(t, http.MethodGet, to, far, "", browser...).Body; !strings.HasPrefix(to, "/nodes/0000000007?told=") || !strings.Contains(body, "node/0000000007 is &lt;done&gt;") || !strings.Contains(body, "a note") {
		t.Errorf("%s says %s", to, body)
	}
	if body := d.send(t, http.MethodGet, to, "10.0.0.9:5", "", "X-Remote-User", "bob").Body; strings.Contains(body, "is &lt;done&gt;") {
		t.Error("another is told what came of it")
	}
	d.fails = errors.New("it is <locked>")
	failed := send(url.Values{"node": {"0000000007"}, "sure": {"yes"}, "form": {form}})
	if failed.Expect(t, http.StatusConflict); !strings.Contains(failed.Body, "it is &lt;locked&gt;") || !strings.Contains(d.log.String(), "Action failed") {
		t.Errorf("a failure says %s", failed.Body)
	}
	list := d.send(t, http.MethodGet, "/history?kind=action&id=0000000007", far, "", browser...).Body
	for _, want := range []string{"node-delete by who-destroy", "it is &lt;locked&gt;", "refused: the form is not of this page", far} {
		if !strings.Contains(list, want) {
			t.Errorf("the history has no %q: %s", want, list)
		}
	}
	if strings.Contains(d.log.String(), strings.TrimPrefix(cookie, "poolkeeper-launcher=")) || strings.Contains(d.log.String(), form) {
		t.Error("the log has a secret")
	}
	d.post(t, "/logout", far, url.Values{"form": {"0"}}, browser...).Expect(t, http.StatusForbidden)
	kept := d.cfg
	d.cfg = &configs.Config{WebApp: configs.WebApp{Tokens: kept.WebApp.Tokens[:0:0], ProxyUser: kept.WebApp.ProxyUser}} // the token is taken out
	d.send(t, http.MethodGet, "/images/debian", far, "", browser...).Expect(t, http.StatusSeeOther)
	d.cfg = kept
	d.post(t, "/logout", far, url.Values{"form": {form}}, browser...).Expect(t, http.StatusSeeOther)
	d.send(t, http.MethodGet, path, far, "", browser...).Expect(t, http.StatusSeeOther)
	for range 12 {
		login("wrong")
	}
	login(tokens[configs.MayDestroy]).Expect(t, http.StatusTooManyRequests)
	for _, to := range []string{"//bad.example", "https://bad.example", `/\bad.example`, "javascript:x"} {
		r := d.post(t, "/login", "192.0.2.8:5", url.Values{"token": {tokens[configs.MayRead]}, "to": {to}})
		if r.Header.Get("Location") != "/" {
			t.Errorf("%s leads to %s", to, r.Header.Get("Location"))
		}
	}
}

// Mistake: a site that configures nobody has a path, a link or a header more than before.
func TestWithoutTokensNothingIsThere(t *testing.T) {
	d := newDesk(t, nil)
	d.cfg = &configs.Config{}
	for _, path := range []string{"/login", "/logout", "/act/image-pause"} {
		d.send(t, http.MethodGet, path, "127.0.0.1:5", "").Expect(t, http.StatusNotFound)
		d.post(t, path, "127.0.0.1:5", url.Values{"image": {"debian"}}, "Authorization", "Bearer "+tokens[configs.MayDestroy]).Expect(t, http.StatusMethodNotAllowed)
	}
	with := d.send(t, http.MethodGet, "/images/debian", "127.0.0.1:5", "").Body
	bare := get(t, Options{Daemon: "launcher", Tree: still([]*zkmodel.Image{{Name: "debian"}}, nil, nil)}, "/images/debian").Body
	for _, no := range []string{"/act/", "Log in", `class="acts"`} {
		if strings.Contains(with, no) || strings.Contains(bare, no) {
			t.Errorf("there is %s", no)
		}
	}
	d.send(t, http.MethodGet, "/images/debian", "192.0.2.7:5", "", "Accept", "text/html").Expect(t, http.StatusForbidden)
	if len(d.did) > 0 {
		t.Errorf("done: %q", d.did)
	}
}

// Mistakes: what is written down names another thing than what was done; a proxy that hands on the passwords of its
// users takes nobody in; another page has a browser fill the tree with refusals; what is confirmed was never shown.
func TestWhatIsDoneIsWhatWasShownAndIsWrittenDown(t *testing.T) {
	const far, proxy = "192.0.2.7:5", "10.0.0.9:5"
	d := newDesk(t, nil)
	bearer := []string{"Authorization", "Bearer " + tokens[configs.MayDestroy]}
	for _, extra := range []string{"image=debian", "upload=x", "build=debian-0000000001", "provider=north", "request=100-1"} {
		d.send(t, http.MethodPost, "/act/node-delete", far, "sure=yes&node=0000000007&"+extra, bearer...).Expect(t, http.StatusBadRequest)
	}
	d.send(t, http.MethodPost, "/act/hold", far, "node=0000000007&image=debian", bearer...).Expect(t, http.StatusBadRequest)

	for range 30 {
		d.send(t, http.MethodPost, "/act/node-delete", proxy, "", "X-Remote-User", "eve", "Authorization", basic("of the proxy")).Expect(t, http.StatusForbidden)
	}
	bob := []string{"X-Remote-User", "bob", "Authorization", basic("of the proxy"), "Accept", "text/html"}
	const path = "/act/image-rollback?image=debian"
	body := d.send(t, http.MethodGet, path, proxy, "", bob...).Body
	form, seen := hidden.FindStringSubmatch(body), regexp.MustCompile(`name="seen" value="([0-9a-f]+)"`).FindStringSubmatch(body)
	if form == nil || seen == nil {
		t.Fatalf("bob's form: %s", body)
	}
	send := func(more string) answer {
		return d.send(t, http.MethodPost, "/act/image-rollback", proxy, "image=debian&sure=yes&form="+form[1]+"&seen="+seen[1]+more, bob...)
	}
	got := send("&build=debian-0000000001&in=")
	if got.Expect(t, http.StatusConflict); !strings.Contains(got.Body, "build debian-0000000001 is ready") {
		t.Errorf("what was chosen is shown: %s", got.Body)
	}
	if len(d.did) > 0 {
		t.Fatalf("done: %q", d.did)
	}
	send("").Expect(t, http.StatusSeeOther)
	for _, way := range []struct {
		from      string
		lines     []string
		forwarded string
	}{
		{proxy, []string{"198.51.100.1"}, "198.51.100.1"},
		{proxy, []string{"203.0.113.9", "198.51.100.2"}, "203.0.113.9, 198.51.100.2"}, // the first is the browser's own word
		{proxy, []string{strings.Repeat("203.0.113.9, ", 100) + "198.51.100.3"}, "203.0.113.9, 198.51.100.3"},
		{far, []string{"198.51.100.4"}, ""}, // no proxy that is believed
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/act/image-build", strings.NewReader("image=debian"))
		r.Host, r.RemoteAddr, r.Header = "localhost", way.from, http.Header{"X-Remote-User": {"eve"}, "X-Forwarded-For": way.lines, "Content-Type": {"application/x-www-form-urlencoded"}}
		if way.from == far {
			r.Header = http.Header{"Authorization": {"Bearer " + tokens[configs.MayRead]}, "X-Forwarded-For": way.lines, "Content-Type": {"application/x-www-form-urlencoded"}}
		}
		d.told = nil
		webtest.Serve(d.handler, r).Expect(t, http.StatusForbidden)
		if len(d.told) != 1 || d.told[0].From != way.from || !strings.HasSuffix(d.told[0].Forwarded, way.forwarded) || (way.forwarded == "") != (d.told[0].Forwarded == "") {
			t.Errorf("from %s through %q: told %+v", way.from, way.lines, d.told)
		}
	}

	d.told = nil
	for range 500 {
		d.send(t, http.MethodPost, "/act/image-build", proxy, "image=debian", append(bob, "Origin", "https://bad.example")...).Expect(t, http.StatusForbidden)
	}
	if len(d.told) > 250 {
		t.Errorf("%d refusals are told", len(d.told))
	}

	d.cfg = &configs.Config{} // nobody is named: nobody counts
	for range 30 {
		d.send(t, http.MethodGet, "/images/debian", far, "", "Authorization", basic("wrong")).Expect(t, http.StatusForbidden)
	}
}
