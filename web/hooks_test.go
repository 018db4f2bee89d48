package web

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"poolkeeper/zkmodel/hook"
)

// inbox takes what hooks are told.
type inbox struct {
	mu       sync.Mutex // connections are served at once
	settings hook.Settings
	known    map[string]hook.Delivery
	results  map[string]int
	err      error
}

func (i *inbox) Hook(name string) (hook.Settings, bool) {
	return i.settings, name == i.settings.Name
}

func (i *inbox) Count(_, result string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.results[result]++
}

func (i *inbox) Keep(_ context.Context, d *hook.Delivery) (bool, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, known := i.known[d.ID]; known || i.err != nil {
		return false, i.err
	}
	i.known[d.ID] = *d
	return true, nil
}

func newInbox() *inbox {
	return &inbox{
		settings: hook.Settings{Name: "elements", Secret: "0123456789abcdef", Events: []string{"push", "merge*"}, Refs: []string{"refs/heads/*"}},
		known:    map[string]hook.Delivery{}, results: map[string]int{},
	}
}

// tells makes a request to a hook; headers are pairs.
func tells(t *testing.T, target, secret, body string, headers ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(body))
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(body))
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	r.Header.Set("X-GitHub-Event", "push")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// Mistakes: what is not signed, or with another secret, and is taken; what nobody wants and is
// stored; a body without end; a path that takes more than hooks do.
func TestHooksTakeWhatIsSignedAndWanted(t *testing.T) {
	const secret, id = "0123456789abcdef", "X-GitHub-Delivery"
	const push = `{"ref": "refs/heads/feature/x", "after": "53ce4e8", "repository": {"full_name": "acme/elements"}}`
	box := newInbox()
	o := Options{Hooks: box}
	for _, c := range []struct {
		why    string
		r      *http.Request
		status int
		result string
	}{
		{"as it should be", tells(t, "/hooks/elements", secret, push, id, "a-1"), http.StatusAccepted, "taken"},
		{"again", tells(t, "/hooks/elements", secret, push, id, "a-1"), http.StatusOK, "known"},
		{"another secret", tells(t, "/hooks/elements", "0123456789abcdeg", push, id, "a-2"), http.StatusForbidden, "refused"},
		{"no signature", tells(t, "/hooks/elements", secret, push, id, "a-2", "X-Hub-Signature-256", ""), http.StatusForbidden, "refused"},
		{"the old signature", tells(t, "/hooks/elements", secret, push, id, "a-2", "X-Hub-Signature-256", "sha1=00"), http.StatusForbidden, "refused"},
		{"half a signature", tells(t, "/hooks/elements", secret, push, id, "a-2", "X-Hub-Signature-256", "sha256="), http.StatusForbidden, "refused"},
		{"no id", tells(t, "/hooks/elements", secret, push), http.StatusBadRequest, "refused"},
		{"an id with a path", tells(t, "/hooks/elements", secret, push, id, "../x"), http.StatusBadRequest, "refused"},
		{"ping", tells(t, "/hooks/elements", secret, `{}`, id, "a-3", "X-GitHub-Event", "ping"), http.StatusOK, "unwanted"},
		{"another event", tells(t, "/hooks/elements", secret, push, id, "a-3", "X-GitHub-Event", "star"), http.StatusOK, "unwanted"},
		{"a tag", tells(t, "/hooks/elements", secret, `{"ref": "refs/tags/v1"}`, id, "a-3"), http.StatusOK, "unwanted"},
		{"no JSON", tells(t, "/hooks/elements", secret, "payload=%7B", id, "a-3"), http.StatusOK, "unwanted"},
		{"too much", tells(t, "/hooks/elements", secret, strings.Repeat(" ", hookBody)+push, id, "a-4"), http.StatusRequestEntityTooLarge, "refused"},
		{"another hook", tells(t, "/hooks/others", secret, push, id, "a-5"), http.StatusMethodNotAllowed, ""},
		{"below it", tells(t, "/hooks/elements/x", secret, push, id, "a-5"), http.StatusMethodNotAllowed, ""},
		{"the page", tells(t, "/", secret, push, id, "a-5"), http.StatusMethodNotAllowed, ""},
	} {
		before := box.results[c.result]
		a := serve(o, c.r)
		if a.Status != c.status || c.result != "" && box.results[c.result] != before+1 {
			t.Errorf("%s: %d, want %d; %v: %s", c.why, a.Status, c.status, box.results, a.Body)
		}
		if strings.Contains(a.Body, secret) {
			t.Errorf("%s: the secret shows: %s", c.why, a.Body)
		}
	}
	want := hook.Delivery{Hook: "elements", ID: "a-1", Event: "push", Ref: "refs/heads/feature/x", Repository: "acme/elements", Commit: "53ce4e8"}
	if len(box.known) != 1 || box.known["a-1"] != want {
		t.Errorf("stored are %+v", box.known)
	}
	get(t, o, "/hooks/elements").Expect(t, http.StatusMethodNotAllowed)
	if a := serve(Options{}, tells(t, "/hooks/elements", secret, push, id, "a-9")); a.Status != http.StatusMethodNotAllowed {
		t.Errorf("without hooks: %d", a.Status)
	}
}

// Mistakes: an answer that says what is not stored is; a sender that can fill the tree.
func TestHooksTakeNoMoreThanTheyCanStore(t *testing.T) {
	box := newInbox()
	handler := newHandler(Options{Hooks: box}).routes()
	answer := func(id string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, tells(t, "/hooks/elements", box.settings.Secret, `{"ref": "refs/heads/main"}`, "X-GitHub-Delivery", id))
		return w
	}
	for _, err := range []error{hook.ErrFull, errors.New("no ZooKeeper")} {
		box.err = err
		if w := answer("first"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%v: %d %v", err, w.Code, w.Header())
		}
	}
	box.err = nil
	taken, refused := 0, 0
	for i := range 2 * hookBurst {
		switch w := answer("n" + string(rune('a'+i/26)) + string(rune('a'+i%26))); w.Code {
		case http.StatusAccepted:
			taken++
		case http.StatusTooManyRequests:
			refused++
		default:
			t.Errorf("%d: %s", w.Code, w.Body)
		}
	}
	if refused == 0 || taken < hookBurst-2 || taken != len(box.known) {
		t.Errorf("%d taken, %d refused, %d stored", taken, refused, len(box.known))
	}
}

// slowSender opens a connection from an address to a hook, announces a body, and sends none of it. It returns when the server
// reads the body or has answered.
func slowSender(t *testing.T, server, from, signature string) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprintf(conn, "POST /hooks/elements HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\nExpect: 100-continue\r\n%s\r\n", signature)
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}

// Slow senders that do not know the secret must not keep out deliveries that are signed: neither without a signature, nor with
// forged ones from one network, nor, if the sender has signed before, with forged ones from many networks.
func TestSlowSendersDoNotBlockHooks(t *testing.T) {
	forged := "X-Hub-Signature-256: sha256=" + strings.Repeat("0", 64) + "\r\n"
	for name, c := range map[string]struct {
		signature string
		from      []string
		before    int // correct deliveries before the attack
	}{
		"without a signature":            {"", []string{"127.0.0.1"}, 0},
		"forged, one network":            {forged, []string{"127.0.1.1", "127.0.1.2"}, 0},
		"forged, many networks, a known": {forged, []string{"127.0.1.1", "127.0.2.1", "127.0.3.1", "127.0.4.1"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			box := newInbox()
			server, err := New(t.Context(), Options{Addr: "127.0.0.1:0", Hooks: box})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
			done := make(chan error, 1)
			go func() { done <- server.Run(ctx) }()
			defer func() {
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			}()
			deliver := func(n int) {
				t.Helper()
				r := tells(t, "http://"+server.Addr()+"/hooks/elements", box.settings.Secret, `{"ref": "refs/heads/main"}`, "X-GitHub-Delivery", fmt.Sprintf("d-%d", n))
				r.RequestURI = ""
				answer, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				_ = answer.Body.Close()
				if answer.StatusCode != http.StatusAccepted {
					t.Errorf("delivery %d: %s", n, answer.Status)
				}
			}
			for n := range c.before {
				deliver(n)
			}
			for n := range 24 {
				slowSender(t, server.Addr(), c.from[n%len(c.from)], c.signature)
			}
			for n := range 22 {
				deliver(c.before + n)
			}
		})
	}
}
