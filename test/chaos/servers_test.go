package chaos

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"poolkeeper/zkmodel"
)

// quiet is a logger for those who want none.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// compareServers tells whether the ensemble's servers hold the same, and shows the
// requests and their locks; all of it goes into files: what looks like a fault of ours may be one of theirs.
func (w *world) compareServers() {
	w.t.Helper()
	all := map[string][]string{} // what each server holds at a path
	var views []map[string]string
	for i, addr := range w.ensemble.Addrs() {
		view, err := viewOf(addr, "/")
		if err != nil {
			w.t.Logf("server %s cannot be read: %v", addr, err)
			continue
		}
		views = append(views, view)
		var lines strings.Builder
		for _, at := range slices.Sorted(maps.Keys(view)) {
			fmt.Fprintf(&lines, "%s %s\n", at, view[at])
		}
		w.write(w.path("tree-of-"+serverName(i)), lines.String())
	}
	for i, view := range views {
		for at, what := range view {
			if all[at] == nil {
				all[at] = make([]string, len(views))
			}
			all[at][i] = what
		}
	}
	for _, at := range slices.Sorted(maps.Keys(all)) {
		what := all[at]
		switch {
		case slices.ContainsFunc(what, func(other string) bool { return other != what[0] }):
			w.t.Logf("the servers differ, unless it has just changed: %s\n%s", at, strings.Join(what, "\n"))
		case strings.HasPrefix(at, zkmodel.RequestsRoot): // and their locks
			w.t.Logf("%s: %s", at, what[0])
		}
	}
}

// viewOf is all that one server holds, by path.
func viewOf(addr, root string) (map[string]string, error) {
	conn, _, err := zk.Connect([]string{addr}, 5*time.Second, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	if _, err := conn.Sync("/"); err != nil {
		return nil, fmt.Errorf("sync: %w", err)
	}
	view := map[string]string{}
	return view, readBelow(conn, root, view)
}

// readBelow reads a node and all below it.
func readBelow(conn *zk.Conn, at string, view map[string]string) error {
	data, stat, err := conn.Get(at)
	if errors.Is(err, zk.ErrNoNode) {
		return nil // just gone
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", at, err)
	}
	view[at] = fmt.Sprintf("written by %x, owned by %x: %s", stat.Mzxid, stat.EphemeralOwner, data)
	names, _, err := conn.Children(at)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("list %s: %w", at, err)
	}
	for _, name := range names {
		if err := readBelow(conn, path.Join(at, name), view); err != nil {
			return err
		}
	}
	return nil
}
