package chaos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"poolkeeper/zkmodel"
)

const (
	// settleTime is how long it may take after the end until all is in order.
	settleTime = 90 * time.Second
	// restTime is how long it has to stay so.
	restTime = 5 * time.Second
)

// settle waits until nothing is left but what is in stock, and tree and clouds
// agree, and looks whether that stays. It is false when that has not come about in time.
func (w *world) settle() bool {
	w.t.Helper()
	limit := settleTime
	if *length >= leakTime { // else they are told
		limit += leakTime
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), limit+restTime)
	defer cancel()
	start, rest := time.Now(), time.Time{}
	var trouble error
	if len(w.faults.backs()) > 0 {
		w.rebuild(ctx)
	}
	for {
		now := w.watch.unsettled(ctx)
		switch {
		case now == nil && rest.IsZero():
			rest = time.Now()
		case now == nil && time.Since(rest) > restTime:
			w.t.Logf("%6.1f s to settle", rest.Sub(start).Seconds())
			return true
		case now != nil && !rest.IsZero() && !isUnseen(now):
			w.watch.count("times that it did not stay settled")
			rest = time.Time{}
		}
		if now != nil && ctx.Err() == nil {
			trouble = now
		}
		if !wait(ctx, lookEvery) {
			w.watch.wrong("not settled within %s: %v", limit, trouble)
			w.compareServers()
			return false
		}
	}
}

// rebuild asks for a build of each image, as docs/backup.md tells people to where the tree has gone back:
// its records may name images that were deleted from clouds since.
func (w *world) rebuild(ctx context.Context) {
	for _, image := range imageNames() {
		for {
			out, err := w.command(ctx, "image-build", image)
			if err == nil {
				break
			}
			if !wait(ctx, time.Second) {
				w.watch.wrong("no build of %s can be asked for: %v: %s", image, err, out)
				return
			}
		}
	}
}

// isUnseen reports whether an error tells of our look alone.
func isUnseen(err error) bool { return errors.Is(err, errMoving) }

// unsettled tells what is left, or nil.
func (v *watch) unsettled(ctx context.Context) error {
	l, err := v.glance(ctx)
	if err != nil {
		return err
	}
	g, err := v.gallery(ctx)
	if err != nil {
		return err
	}
	var left error
	note := func(format string, args ...any) { left = errors.Join(left, fmt.Errorf(format, args...)) }
	if left := v.excuseLeaks(l); *length >= leakTime {
		for id, why := range left {
			note("machine %s: %s", id, why)
		}
	}
	v.othersAreThere(l)
	for what, why := range oddities(l) {
		note("%s: %s", what, why)
	}
	for _, r := range l.requests {
		note("request %s is %s of %s", r.ID, r.State, r.Requestor)
	}
	stock := map[string]int{}
	for _, n := range l.nodes {
		if n.State != zkmodel.NodeReady || n.AllocatedTo != "" || n.Locked {
			note("node %s is %s, allocated to %q, locked: %v", n.ID, n.State, n.AllocatedTo, n.Locked)
			continue
		}
		stock[n.Type[0]]++
	}
	if stock["small"] < stockOfSmall || stock["kept"] < stockOfKept || stock["rack"] != slots {
		note("in stock is %v", stock)
	}
	machineRules(l, note)
	recordRules(l, v.w.limited, func(string) bool { return true }, note)
	stockRules(l, false, note)
	orphans := map[string]bool{}
	v.mu.Lock()
	for id := range v.excused {
		orphans[id] = true
	}
	v.mu.Unlock()
	g.unsettled(orphans, note)
	return left
}

// noSecret looks for the secret where it must not be: in logs of daemons and builds, and
// in the tree.
func (w *world) noSecret() {
	w.t.Helper()
	found := 0
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "secure.yaml" || d.Name() == "poolkeeper" {
			return nil //nolint:nilerr // it has gone meanwhile
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil //nolint:nilerr // the same
		}
		if strings.Contains(string(text), secret) {
			w.watch.wrong("the secret is in %s", path)
		}
		if strings.Contains(string(text), "the secret is") {
			found++
		}
		return nil
	})
	w.must(err)
	if found == 0 {
		w.t.Error("no log of a build was found")
	}
	for _, addr := range w.ensemble.Addrs() {
		view, err := viewOf(addr, "/")
		if err != nil {
			w.t.Error(err)
		}
		for at, text := range view {
			if strings.Contains(text, secret) {
				w.watch.wrong("the secret is in %s of the tree", at)
			}
		}
	}
}
