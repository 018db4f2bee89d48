package overview

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/recipe"
)

// NodeExplained says what a node is, who has it, and what happens next: node-explain.
type NodeExplained struct {
	Version  string     `json:"version,omitempty"`
	Node     string     `json:"node"`
	State    string     `json:"state"`
	Since    *time.Time `json:"since,omitempty"` // of the state
	Made     *time.Time `json:"made,omitempty"`  // its record
	Labels   []string   `json:"labels"`
	Provider string     `json:"provider"`
	Pool     string     `json:"pool,omitempty"`
	Launcher string     `json:"launcher,omitempty"` // that made it
	Attempt  int        `json:"attempt,omitempty"`
	Asked    *time.Time `json:"machine_asked,omitempty"` // and the cloud has not answered
	Machine  string     `json:"machine,omitempty"`
	Host     string     `json:"hostname,omitempty"`
	Address  string     `json:"address,omitempty"`
	Image    *Booted    `json:"image,omitempty"`
	Request  string     `json:"request,omitempty"` // it is given to
	Asker    string     `json:"requestor,omitempty"`
	Event    string     `json:"event_id,omitempty"` // of that request
	Gone     bool       `json:"request_gone,omitempty"`
	Tenant   string     `json:"tenant,omitempty"`
	Tries    string     `json:"validates,omitempty"` // the upload that it is there to try
	Slot     string     `json:"slot,omitempty"`      // that it is, and on which backing node
	Backs    string     `json:"backs,omitempty"`     // whose slots it has, and who is on them
	Locks    []string   `json:"locked_by,omitempty"` // the first has it
	Locked   bool       `json:"locked"`
	HeldBy   string     `json:"held_by,omitempty"`
	HeldTill *time.Time `json:"held_until,omitempty"`
	Comment  string     `json:"comment,omitempty"`
	Reason   string     `json:"reason,omitempty"`       // why it failed or goes
	Failed   string     `json:"delete_error,omitempty"` // why its machine could not be deleted
	Next     string     `json:"next"`
}

// Booted is what a node was booted from.
type Booted struct {
	Name     string `json:"name"` // of a cloud's own image, or as the record has it
	Image    string `json:"image,omitempty"`
	Build    string `json:"build,omitempty"`
	Provider string `json:"provider,omitempty"`
	Upload   string `json:"upload,omitempty"`
	Builder  string `json:"builder,omitempty"`
	State    string `json:"state,omitempty"` // of the upload; none where it is gone
}

// ExplainNode explains a node of the tree; locks are in line for its lock.
//
// Errors: zkmodel.ErrNotFound, with the ids that may have been meant.
func (t *Tree) ExplainNode(cfg *configs.Config, id string, locks []recipe.Contender) (*NodeExplained, error) {
	at := slices.IndexFunc(t.Nodes, func(n *zkmodel.Node) bool { return n.ID == id })
	if at < 0 {
		var ids []string
		for _, n := range t.Nodes {
			ids = append(ids, n.ID)
		}
		return nil, fmt.Errorf("node %s %w%s", id, zkmodel.ErrNotFound, configs.Similar(id, ids))
	}
	if t.Nodes[at].Broken != nil {
		return nil, fmt.Errorf("node %s: %w: no daemon deletes it; node-delete --broken %s does", id, t.Nodes[at].Broken, id)
	}
	e := t.node(cfg, t.Nodes[at], locks)
	e.Version = Version
	return &e, nil
}

// node explains a node.
func (t *Tree) node(cfg *configs.Config, n *zkmodel.Node, locks []recipe.Contender) NodeExplained {
	e := NodeExplained{
		Node: n.ID, State: string(n.State), Since: when(n.Since()), Made: when(n.Stat.Ctime), Labels: slices.Clone([]string(n.Type)),
		Provider: n.Provider, Pool: n.Pool, Launcher: n.Launcher, Attempt: n.Attempt, Machine: n.ExternalID.Text(), Host: n.Hostname,
		Address: n.InterfaceIP, Request: n.AllocatedTo, Asker: n.Requestor, Tenant: n.TenantName, Tries: n.Validates, Locks: inLine(locks),
		Locked: n.Locked, Comment: n.Comment, Reason: n.Reason, Failed: n.DeleteError, HeldTill: at(n.HoldEnds()), Image: t.booted(n),
	}
	if n.Unanswered() {
		e.Asked = when(n.Asked.Time())
	}
	if n.State == zkmodel.NodeHold {
		e.HeldBy, _ = n.HeldBy()
	}
	if n.AllocatedTo != "" && t.saw(PartRequests) {
		at := slices.IndexFunc(t.Requests, func(r *zkmodel.Request) bool { return r.ID == n.AllocatedTo })
		if e.Gone = at < 0; !e.Gone {
			e.Event = t.Requests[at].EventID
		}
	}
	e.Slot, e.Backs = t.slots(n)
	e.Next = e.next(cfg, n, t.Now)
	return e
}

// slots says on which backing node a node is, and of a backing node what it is kept for.
func (t *Tree) slots(n *zkmodel.Node) (slot, backs string) {
	if on, is := n.OnSlot(); is {
		slot = fmt.Sprintf("%d of backing node %s", on.Slot, on.Backing)
	}
	said, is := n.Backs()
	if !is {
		return slot, ""
	}
	var users []string
	for _, other := range t.Nodes {
		if on, is := other.OnSlot(); is && on.Backing == n.ID && other.Provider == n.BacksFor() {
			users = append(users, other.ID)
		}
	}
	backs = fmt.Sprintf("label %s of provider %s, %d of %d slots used", said.Label, n.BacksFor(), len(users), said.Slots)
	if said.Failed {
		backs += "; it has failed, and takes no new nodes"
	}
	return slot, listing.Words(": ", backs, strings.Join(users, ", "))
}

// booted is what a node was booted from; nil where its record does not say.
func (t *Tree) booted(n *zkmodel.Node) *Booted {
	if n.ImageID == "" {
		return nil
	}
	b := &Booted{Name: n.ImageID}
	key, err := zkmodel.ParseUploadPath(n.ImageID)
	if err != nil { // an image of the cloud
		return b
	}
	b.Image, b.Build, b.Provider, b.Upload = key.Image, key.Build, key.Provider, key.ID
	for _, image := range t.Images {
		if image.Name != key.Image {
			continue
		}
		for _, build := range image.Builds {
			if build.ID != key.Build {
				continue
			}
			b.Builder = build.Builder
			for _, u := range build.Uploads {
				if u.UploadKey == key {
					b.State = string(u.State)
				}
			}
		}
	}
	return b
}

// next says what happens next to a node.
func (e *NodeExplained) next(cfg *configs.Config, n *zkmodel.Node, now time.Time) string {
	switch n.State {
	case zkmodel.NodeInit, zkmodel.NodeBuilding, zkmodel.NodeTesting:
		switch {
		case !n.Locked:
			return "its launcher is gone: another one of " + n.Provider + " goes on, or deletes it"
		case n.Unanswered():
			return "the cloud was asked for its machine and has not answered; the launcher waits for that"
		}
		if e.Gone {
			return "its launcher boots it; request " + n.AllocatedTo + " is deleted, so another request gets it, or the stock"
		}
		return "its launcher boots it, and gives it to " + orStock(n.AllocatedTo) + " when it is ready"
	case zkmodel.NodeReady:
		return e.nextOfReady(cfg, n, now)
	case zkmodel.NodeInUse:
		if !n.Locked {
			return "who used it has let go of its lock: a launcher deletes it"
		}
		if n.BacksFor() != "" {
			return "a launcher of " + n.BacksFor() + " gives it back when nobody has used its slots for a while (grace-time)"
		}
		return "it is deleted when who uses it gives it back"
	case zkmodel.NodeUsed, zkmodel.NodeFailed, zkmodel.NodeDeleting:
		if n.Locked {
			return "a launcher of " + n.Provider + " deletes it, now or when its lock is free"
		}
		return "a launcher of " + n.Provider + " deletes it"
	case zkmodel.NodeHold:
		if end := n.HoldEnds(); !end.IsZero() {
			return "a launcher deletes it after " + end.UTC().Format(time.RFC3339) + ", or who holds it does (node-delete)"
		}
		if cfg.MaxHoldAge > 0 {
			return fmt.Sprintf("it is deleted %s after it was held (max-hold-age), or by node-delete", cfg.MaxHoldAge)
		}
		return "it stays until node-delete"
	case zkmodel.NodeAborted, zkmodel.NodeDeleted:
		return "it has no machine, and its record goes"
	}
	return "nobody of this release knows the state " + string(n.State)
}

// nextOfReady is next of a node that is ready.
func (e *NodeExplained) nextOfReady(cfg *configs.Config, n *zkmodel.Node, now time.Time) string {
	switch {
	case n.Validates != "":
		return "the launcher checks it, and deletes it"
	case n.AllocatedTo != "" && e.Gone:
		return "its request is gone: a launcher gives it to another one, or to the stock"
	case n.AllocatedTo != "":
		return "the requestor of " + n.AllocatedTo + " takes it"
	case n.Launcher == zkmodel.StaticLauncher:
		return "the next request for its labels gets it; its machine stays"
	}
	for _, label := range cfg.Labels {
		if slices.Contains(n.Type, label.Name) && label.MaxReadyAge > 0 {
			return fmt.Sprintf("the next request for its labels gets it; it is deleted in %s (max-ready-age)",
				listing.Span(n.Since().Add(label.MaxReadyAge).Sub(now)))
		}
	}
	return "the next request for its labels gets it"
}

// orStock is a request, or what stands for none.
func orStock(request string) string {
	if request == "" {
		return "the stock"
	}
	return "request " + request
}

// brief is a node in one line.
func (e *NodeExplained) brief(now time.Time) string {
	return listing.Words("  ", fmt.Sprintf("%-12s %-10s", e.Node, e.State), age(e.Since, now),
		e.Provider+"/"+e.Pool, strings.Join(e.Labels, ", "), e.Reason, e.Failed)
}

// Lines are what people read.
func (e *NodeExplained) Lines(now time.Time) []string {
	lines := []string{listing.Words(" ", "Node", e.Node, "of", e.Provider+"/"+e.Pool, "for", strings.Join(e.Labels, ", "))}
	add := func(key, text string) {
		if text != "" {
			lines = append(lines, fmt.Sprintf("  %-10s %s", key, text))
		}
	}
	add("state", listing.Words(" ", e.State, age(e.Since, now)))
	add("made", listing.Words(" ", at10(e.Made), age(e.Made, now), by(e.Launcher)))
	if e.Attempt > 1 {
		add("attempt", fmt.Sprint(e.Attempt))
	}
	add("machine", listing.Words(", ", e.Machine, e.Host, e.Address))
	if e.Asked != nil {
		add("machine", "asked for at "+at10(e.Asked)+" "+age(e.Asked, now)+", and the cloud has not answered")
	}
	if b := e.Image; b != nil && b.Image == "" {
		add("image", b.Name+" of the cloud")
	} else if b != nil {
		state := b.State
		if state == "" {
			state = "gone"
		}
		add("image", fmt.Sprintf("%s-%s, upload %s (%s)%s", b.Image, b.Build, b.Upload, state, listing.Words("", builtOn(b.Builder))))
	}
	gone := ""
	if e.Gone {
		gone = "which is gone"
	}
	if e.Request != "" {
		add("request", listing.Words(", ", e.Request, gone))
	}
	add("event", e.Event)
	add("requestor", e.Asker)
	add("tenant", e.Tenant)
	add("tries", e.Tries)
	if add("lock", strings.Join(e.Locks, ", then ")); e.Locked && len(e.Locks) == 0 {
		add("lock", "it is locked, or that cannot be told")
	}
	add("slot", e.Slot)
	add("backs", e.Backs)
	add("comment", e.Comment)
	add("reason", e.Reason)
	add("undeleted", e.Failed)
	add("next", e.Next)
	return lines
}

func builtOn(builder string) string {
	if builder == "" {
		return ""
	}
	return ", built by " + builder
}
