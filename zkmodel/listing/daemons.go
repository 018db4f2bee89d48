package listing

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"poolkeeper/zkmodel"
)

// DaemonFacts are the facts about a daemon that records other than its own hold.
type DaemonFacts struct {
	Work          string // what it does now; "" if that is unknown
	Configuration string // the version of the fleet's configuration that it runs; "" without one
}

// DaemonSummary lists running daemons, one row for each.
func DaemonSummary(daemons []zkmodel.Daemon, facts func(zkmodel.Daemon) DaemonFacts, now time.Time) *Table {
	t := &Table{kind: "daemons", columns: []column{
		{title: "Host", key: "host"},
		{title: "Kind", key: "kind"},
		{title: "Version", key: "version"},
		{title: "Uptime", key: "registered"},
		{title: "State", key: "state", by: ByState},
		{title: "Work", key: "work"},
		{title: "Configuration", key: "configuration"},
		{title: "Reason", key: "reason"},
	}}
	for _, d := range inOrder(daemons) {
		t.note(d.Broken)
		f := facts(d)
		t.rows = append(t.rows, []cell{
			text(cmp.Or(d.Hostname, d.Name)), text(d.Kind), text(d.Version), since(d.Since, now), state(d.State, d.Broken),
			text(f.Work), text(f.Configuration), text(d.Reason),
		})
	}
	return t
}

// inOrder sorts daemons by kind, host and name.
func inOrder(daemons []zkmodel.Daemon) []zkmodel.Daemon {
	return slices.SortedFunc(slices.Values(daemons), func(a, b zkmodel.Daemon) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Hostname, b.Hostname), cmp.Compare(a.Name, b.Name))
	})
}

// Daemons lists running daemons, a row for each share that one has, and who has or waits
// for a place where there are only so many.
func Daemons(daemons []zkmodel.Daemon, places []zkmodel.Place, now time.Time) *Table {
	t := &Table{kind: "daemons", columns: []column{
		{title: "Host", key: "host"},
		{title: "Kind", key: "kind"},
		{title: "State", key: "state", by: ByState},
		{title: "Share", key: "share"},
		{title: "Held", key: "held"},
		{title: "Age", key: "age", own: "since"},
		{title: "Reason", key: "reason"},
		{title: "Registered", key: "registered", detail: true},
		{title: "Name", key: "name", detail: true},
		{title: "Version", key: "version", detail: true},
	}}
	for _, d := range inOrder(daemons) {
		t.note(d.Broken)
		row := func(share string, held, age cell) {
			t.rows = append(t.rows, []cell{
				text(cmp.Or(d.Hostname, d.Name)), text(d.Kind), state(d.State, d.Broken), text(share), held, age, text(d.Reason),
				since(d.Since, now), text(d.Name), text(d.Version),
			})
		}
		if len(d.Shares) == 0 {
			row("", cell{}, cell{})
		}
		for _, share := range slices.Sorted(maps.Keys(d.Shares)) {
			row(share, flag(true), since(d.Shares[share].Time(), now))
		}
	}
	for _, p := range places {
		t.rows = append(t.rows, []cell{
			text(p.Host), text(p.Kind), {}, text(p.Share), flag(!p.Waits), since(p.Since, now), text(p.Reason), {}, {}, {},
		})
	}
	return t
}
