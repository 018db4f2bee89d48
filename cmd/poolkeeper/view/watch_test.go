package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/test/ptytest"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/recipe"
)

// site is a tree with nodes, and a client that reaches it through a proxy.
type site struct {
	*testing.T
	session *recipe.Session // of another, who writes
	proxy   *zktest.Proxy
	client  *recipe.Client
}

func newSite(t *testing.T) *site {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t, goleak.IgnoreCurrent()) })
	addr, root := zktest.Shared(t).Addr(), zktest.Root(t)
	dial := func(addr string) *recipe.Client {
		client, err := recipe.Dial(recipe.Config{Servers: []string{addr}, Chroot: root, Timeout: 4 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		return client
	}
	session, err := dial(addr).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	proxy := zktest.StartProxy(t, addr)
	return &site{t, session, proxy, dial(proxy.Addr())}
}

// node writes a node; "" deletes it.
func (s *site) node(id, state string) {
	s.Helper()
	path := zkmodel.NodePath(id)
	var err error
	if state == "" {
		err = s.session.Delete(s.Context(), path, recipe.AnyVersion)
	} else if err = s.session.EnsurePath(s.Context(), path); err == nil {
		record := fmt.Sprintf(`{"state": %q, "provider": "p%s", "type": ["l"]}`, state, id[9:])
		_, err = s.session.Set(s.Context(), path, []byte(record), recipe.AnyVersion)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// follow follows the nodes on out, until the returned function is called.
func (s *site) follow(out, told *os.File, flags Flags, filters ...Filter) (end func() error) {
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan error, 1)
	go func() {
		watched := Watched{Parts: zkmodel.PartNodes, Table: func(m *zkmodel.Mirror, now time.Time) *listing.Table {
			return listing.Nodes(m.Nodes(), now)
		}}
		done <- flags.Follow(ctx, &app.App{Stdout: out, Stderr: told}, s.client, watched, filters...)
	}()
	return func() error {
		cancel()
		return <-done
	}
}

// file is one that a test reads while it is written.
func file(t *testing.T) (f *os.File, text func() string) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, func() string {
		data, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
}

// shows waits until what was printed has some text.
func shows(t *testing.T, text func() string, want string) {
	t.Helper()
	zktest.Eventually(t, func() bool { return strings.Contains(text(), want) }, "%q is shown", want)
}

// Lines are added for what changes, and for nothing else; a session that is lost is told, and what has
// changed meanwhile is told afterwards. Mistakes: lines for ages; one that is gone without a word;
// a listing that stands still, or ends, when its session is lost.
func TestFollowInAPipe(t *testing.T) {
	s := newSite(t)
	s.node("0000000001", "ready")
	s.node("0000000002", "building")
	out, text := file(t)
	told, said := file(t)
	end := s.follow(out, told, Flags{Forms: Forms{Output: "table"}}, States(ByState{}, zkmodel.NodeStates()...))
	shows(t, text, "| 0000000002 | p2")
	before := text()
	s.node("0000000002", "ready")
	shows(t, text, "| 0000000002 | p2       | l     |           |             |      | ready ")
	s.node("0000000001", "")
	shows(t, text, "| 0000000001 | p1       | l     |           |             |      | gone ")
	s.proxy.Cut()
	shows(t, said, "poolkeeper: "+wordLost+"\n")
	s.node("0000000003", "failed")
	s.proxy.Heal()
	shows(t, text, "| 0000000003 | p3       | l     |           |             |      | failed ")
	shows(t, said, "poolkeeper: "+wordAgain+"\n")
	if err := end(); err != nil {
		t.Errorf("Ctrl-C ends it with %v", err)
	}
	added := strings.TrimPrefix(text(), before)
	if lines := strings.Count(added, "\n"); lines != 3 {
		t.Errorf("%d lines were added, want 3:\n%s", lines, added)
	}
	if n := strings.Count(said(), "\n"); n != 2 {
		t.Errorf("on stderr:\n%s", said())
	}
}

// Documents that go on are a line each; filters hold for what comes later, and what leaves them
// is gone. A form that has an end is refused, as is a name that nobody knows.
func TestFollowDocuments(t *testing.T) {
	s := newSite(t)
	s.node("0000000001", "ready")
	s.node("0000000002", "building")
	out, text := file(t)
	filter := States(ByState{State: []string{"ready"}}, zkmodel.NodeStates()...)
	end := s.follow(out, out, Flags{Forms: Forms{Output: "json-v1"}}, filter)
	shows(t, text, `"change": "is", "item": {"id": "0000000001"`)
	s.node("0000000002", "ready")
	shows(t, text, `"change": "is", "item": {"id": "0000000002"`)
	s.node("0000000001", "in-use")
	shows(t, text, `"change": "gone", "item": {"id": "0000000001"`)
	if err := end(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(text(), "\n"); n != 3 {
		t.Errorf("%d lines:\n%s", n, text())
	}
	if err := s.follow(out, out, Flags{Forms: Forms{Output: "yaml"}})(); !errors.Is(err, errForm) {
		t.Errorf("YAML: %v", err)
	}
	ctx := s.Context()
	watched := Watched{Parts: zkmodel.PartNodes, Table: func(m *zkmodel.Mirror, now time.Time) *listing.Table { return listing.Nodes(m.Nodes(), now) }}
	a := &app.App{Stdout: io.Discard, Stderr: io.Discard}
	err := Flags{Forms: Forms{Output: "table"}}.Follow(ctx, a, s.client, watched, States(ByState{State: []string{"reday"}}, zkmodel.NodeStates()...))
	if err == nil || !strings.Contains(err.Error(), `did you mean "ready"`) {
		t.Errorf("an unknown state: %v", err)
	}
}

// A terminal is written over: at most as many lines as it has, none longer than it is wide.
func TestFollowOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "1")
	s := newSite(t)
	for n := range 30 {
		s.node(fmt.Sprintf("%010d", n), "ready")
	}
	master, terminal := ptytest.Open(t, 60, 12)
	out, text := file(t)
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(out, master) // it ends with an error when nobody has the terminal any more
	}()
	end := s.follow(terminal, out, Flags{Forms: Forms{Output: "table"}})
	shows(t, text, "more lines have no room")
	s.node("0000000002", "failed")
	shows(t, text, "failed")
	if err := end(); err != nil {
		t.Error(err)
	}
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	<-copied
	screens := strings.Split(text(), "\x1b[H")
	last := screens[len(screens)-1]
	if n := strings.Count(last, "\n"); n > 11 || !strings.Contains(last, "0000000002") || !strings.HasSuffix(last, "\x1b[J") {
		t.Errorf("%d lines:\n%q", n, last)
	}
	for line := range strings.Lines(strings.ReplaceAll(last, "\r\n", "\n")) {
		if line = strings.NewReplacer("\x1b[K", "", "\x1b[J", "", "\x1b[2J", "", "\n", "").Replace(line); len([]rune(line)) > 60 {
			t.Errorf("%d columns: %q", len([]rune(line)), line)
		}
	}
}
