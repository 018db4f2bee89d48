package soak

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/zkmodel"
)

// settleTime is how long it may take after the end until all is in order.
const settleTime = 45 * time.Second

// settle waits until nothing is left but what is in stock, and tree and clouds
// agree. It is false when that has not come about in time.
func (w *world) settle() bool {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), settleTime)
	defer cancel()
	start := time.Now()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var trouble error
	for {
		now := w.watch.unsettled(ctx)
		if now == nil {
			w.t.Logf("%6.1f s to settle", time.Since(start).Seconds())
			return true
		}
		if ctx.Err() == nil {
			trouble = now
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.watch.wrong("not settled within %s: %v", settleTime, trouble)
			w.compareServers()
			return false
		}
	}
}

// unsettled tells what is left, or nil.
func (v *watch) unsettled(ctx context.Context) error {
	l, err := v.glance(ctx)
	if err != nil {
		return err
	}
	var left error
	note := func(format string, args ...any) { left = errors.Join(left, fmt.Errorf(format, args...)) }
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
	if stock["small"] < stockOfSmall || stock["shelf"] < stockOfShelf || stock["rack"] != slots {
		note("in stock is %v", stock)
	}
	machineRules(l, note)
	recordRules(l, v.limited, note)
	stockRules(l, false, note)
	return left
}
