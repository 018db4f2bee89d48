package launcher_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/launcher"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// said counts the warnings of a log, by message.
type said struct {
	mu    sync.Mutex
	count map[string]int
	last  map[string]string
}

func (s *said) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var l struct {
		Message string `json:"@message"`
		Level   string `json:"@level"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return 0, err
	}
	if l.Level != hclog.Warn.String() && l.Level != hclog.Error.String() {
		return len(line), nil
	}
	s.count[l.Message]++
	s.last[l.Message] = string(line)
	return len(line), nil
}

// Records that cannot be read, or locked, or decoded, are told of once, and not
// whenever the launcher comes across them.
func TestUnreadableRecordsAreToldOnce(t *testing.T) {
	t.Parallel()
	const count = 20
	s := newSite(t, strings.ReplaceAll(closedClouds, "max-servers: 5", "ignore-provider-quota: true, max-servers: 500")) // what is unknown occupies
	s.image()
	ctx := t.Context()
	session := s.store.Session()
	create := func(at, data string) {
		t.Helper()
		if err := session.EnsurePath(ctx, at[:strings.LastIndexByte(at, '/')]); err != nil {
			t.Fatal(err)
		}
		if _, err := session.Create(ctx, at, []byte(data), recipe.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	forbid := func(restrict func(testing.TB, string, string, string) func(), at string) {
		t.Helper()
		allow := restrict(t, zktest.Shared(t).Addr(), s.root, at)
		t.Cleanup(allow)
	}
	const used = `{"state": "used", "provider": "cloud", "pool": "main", "type": ["small"], "state_time": 1}`
	const wanted = `{"state": "requested", "node_types": ["small"], "requestor": "r", "state_time": 1}`
	for i := range count {
		node := func(kind int) string { return zkmodel.NodePath(fmt.Sprintf("%010d", 100*kind+i)) }
		request := func(kind int) string { return fmt.Sprintf("300-%010d", 100*kind+i) }
		create(node(1), used)
		forbid(zktest.Forbid, node(1))
		create(node(2), used)
		create(zkmodel.LockPath(node(2)), "")
		forbid(zktest.Forbid, zkmodel.LockPath(node(2)))
		create(node(3), used) // which can be locked, and not be changed
		create(zkmodel.LockPath(node(3)), "")
		forbid(zktest.Protect, node(3))
		zktest.Forbid(t, zktest.Shared(t).Addr(), s.root, zkmodel.LockPath(node(3)))()
		create(node(4), `no JSON`)
		create(zkmodel.RequestPath(request(1)), wanted)
		forbid(zktest.Forbid, zkmodel.RequestPath(request(1)))
		create(zkmodel.RequestPath(request(2)), wanted)
		create(zkmodel.RequestLockPath(request(2)), "")
		forbid(zktest.Forbid, zkmodel.RequestLockPath(request(2)))
		create(zkmodel.RequestPath(request(3)), wanted)
		forbid(zktest.Protect, zkmodel.RequestPath(request(3)))
		create(zkmodel.RequestPath(request(4)), `no JSON`)
	}
	heard := &said{count: map[string]int{}, last: map[string]string{}}
	s.launch(func(d *launcher.Deps) {
		d.Logger = hclog.New(&hclog.LoggerOptions{Output: heard, JSONFormat: true, Level: hclog.Info})
	})
	for range 20 { // the others are served, and the tree changes
		r := s.wait(s.submit(wish("large")))
		taken, err := s.zuul.Accept(ctx, r)
		if err == nil {
			err = s.zuul.Use(taken...)
		}
		if err == nil {
			err = s.zuul.Return(taken...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	heard.mu.Lock()
	defer heard.mu.Unlock()
	for message, n := range heard.count {
		if n > 4 { // a line for each of two clouds or two trees, of what could be 20 a second
			t.Errorf("%d lines %q, the last: %s", n, message, heard.last[message])
		}
	}
	for _, message := range []string{"Node is left alone for a moment", "Request is left alone for a moment"} {
		if heard.count[message] != 1 {
			t.Errorf("%d lines %q, want one", heard.count[message], message)
		}
	}
}
