package listing

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"poolkeeper/zkmodel"
)

// Nodes lists every node: list. Details are most of the record.
func Nodes(nodes []*zkmodel.Node, now time.Time) *Table {
	t := &Table{kind: "nodes", columns: []column{
		{title: "ID", key: "id"},
		{title: "Provider", key: "provider", by: ByProvider},
		{title: "Label", key: "label", own: "labels", by: ByLabel},
		{title: "Server ID", key: "server_id"},
		{title: "Public IPv4", key: "public_ipv4"},
		{title: "IPv6", key: "ipv6"},
		{title: "State", key: "state", by: ByState},
		{title: "Age", key: "age", own: "since"},
		{title: "Locked", key: "locked"},
		{title: "Pool", key: "pool", detail: true},
		{title: "Hostname", key: "hostname", detail: true},
		{title: "Private IPv4", key: "private_ipv4", detail: true},
		{title: "AZ", key: "AZ", own: "az", detail: true},
		{title: "Username", key: "username", detail: true},
		{title: "Port", key: "connection_port", detail: true},
		{title: "Launcher", key: "launcher", detail: true},
		{title: "Allocated To", key: "allocated_to", detail: true},
		{title: "Hold Job", key: "hold_job", detail: true},
		{title: "Comment", key: "comment", detail: true},
		{title: "User Data", key: "user_data", detail: true},
		{title: "Driver Data", key: "driver_data", detail: true},
		{key: "image_id"},
		{title: "Reason", key: "reason", detail: true},
	}}
	for _, n := range nodes {
		t.note(n.Broken)
		locked := cell{text: "unlocked", value: "unlocked", own: false}
		if n.Locked {
			locked = cell{text: "locked", value: "locked", own: true}
		}
		t.rows = append(t.rows, []cell{
			text(n.ID), text(n.Provider), list(n.Type), foreign(n.ExternalID),
			text(n.PublicIPv4), text(n.PublicIPv6), state(n.State, n.Broken),
			nodeAge(changed(n.StateTime, n.Stat.Mtime), now), locked,
			text(n.Pool), text(n.Hostname), text(n.PrivateIPv4), text(n.AZ), text(n.Username),
			port(n.ConnectionPort), text(n.Launcher), text(n.AllocatedTo), text(n.HoldJob),
			text(n.Comment), foreign(n.UserData), foreign(n.DriverData),
			text(n.ImageID), reason(Words("; ", n.Reason, Undeleted(n.DeleteError)), n.Broken),
		})
	}
	return t
}

// Requests lists every node request: request-list.
func Requests(requests []*zkmodel.Request) *Table {
	t := &Table{kind: "requests", columns: []column{
		{title: "Request ID", key: "id"},
		{title: "Priority", key: "relative_priority"},
		{title: "State", key: "state", by: ByState},
		{title: "Requestor", key: "requestor"},
		{title: "Node Types", key: "node_types", own: "labels", by: ByLabel},
		{title: "Nodes", key: "nodes"},
		{title: "Declined By", key: "declined_by"},
		{title: "Event ID", key: "event_id"},
		{title: "Reason", key: "reason", detail: true},
	}}
	for _, r := range requests {
		t.note(r.Broken)
		t.rows = append(t.rows, []cell{
			text(r.ID), number(r.RelativePriority), state(r.State, r.Broken), text(r.Requestor),
			list(r.NodeTypes), list(r.Nodes), list(r.DeclinedBy), text(r.EventID),
			reason(r.Reason, r.Broken),
		})
	}
	return t
}

// nodeAge is how long ago a time was, in JSON too; unknown prints as nothing.
func nodeAge(t, now time.Time) cell {
	if t.IsZero() {
		return cell{}
	}
	c := since(t, now)
	c.value = c.text
	return c
}

// port is a connection's port. Nodes in pods have credentials there, which are
// nobody's to see.
func port(v zkmodel.Value) cell {
	if v.IsNull() {
		return cell{}
	}
	n, ok := v.Int()
	if !ok {
		return text("redacted")
	}
	return number(n)
}

// progress is how far an upload has come.
func progress(p *zkmodel.Progress) cell {
	if p == nil || p.Total <= 0 {
		return hidden(p)
	}
	return cell{
		text:  fmt.Sprintf("%d%% of %s", 100*p.Sent/p.Total, humanize.IBytes(uint64(p.Total))),
		value: p,
	}
}
