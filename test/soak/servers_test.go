package soak

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"poolkeeper/zkmodel"
)

// quiet is a logger for those who want none.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// compareServers shows where the ensemble's servers do not hold the same: what
// looks like a fault of ours may be one of theirs.
func (w *world) compareServers() {
	w.t.Helper()
	var views []string
	for _, addr := range w.ensemble.Addrs() {
		view, err := viewOf(addr)
		if err != nil {
			w.t.Logf("server %s cannot be read: %v", addr, err)
			return
		}
		views = append(views, view)
	}
	same := !slices.ContainsFunc(views, func(v string) bool { return v != views[0] })
	w.t.Logf("the servers hold the same: %v\n%s", same, strings.Join(views, "----\n"))
}

// viewOf lists the requests as one server has them.
func viewOf(addr string) (string, error) {
	conn, _, err := zk.Connect([]string{addr}, 5*time.Second, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	if err != nil {
		return "", fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	_, failed := conn.Sync(zkmodel.RequestsRoot)
	ids, _, err := conn.Children(zkmodel.RequestsRoot)
	if err != nil {
		return "", errors.Join(failed, fmt.Errorf("list: %w", err))
	}
	slices.Sort(ids)
	var lines strings.Builder
	for _, id := range ids {
		data, stat, err := conn.Get(zkmodel.RequestPath(id))
		if err != nil {
			return "", fmt.Errorf("read: %w", err)
		}
		locks, _, err := conn.Children(zkmodel.RequestLockPath(id))
		fmt.Fprintf(&lines, "%s version %d mzxid %x locked by %v (%v): %s\n", id, stat.Version, stat.Mzxid, locks, err, data)
	}
	return lines.String(), failed
}
