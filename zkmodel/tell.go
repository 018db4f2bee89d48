package zkmodel

import (
	"context"
	"path"
	"slices"

	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// Where a site has `events:`, the client of each process has a log (Client.SetLog), and
// each change that is worth telling is written together with its event, in one
// transaction. Where there is none, changes are written as they are.

// teller makes events of changes.
type teller interface {
	// told is the event of the change that the record has since it was read or written;
	// its kind is "" where there is none.
	told() (kind, subject string, data event.Data)
	settle()
}

// telling runs do, which writes changed records, with what writes their events.
func (st *Store) telling(ctx context.Context, do func(also []recipe.Op) error, changed ...teller) error {
	return telling(ctx, st.session, st.events(changed...), do, changed...)
}

// events are those of changed records.
func (st *Store) events(changed ...teller) []event.Event {
	log := st.session.Log()
	if log == nil {
		return nil
	}
	var events []event.Event
	for _, c := range changed {
		if kind, subject, data := c.told(); kind != "" {
			events = append(events, event.New(log.Writer(), kind, subject, st.now(), data))
		}
	}
	return events
}

// telling is Store.telling with events that are made already.
func telling(ctx context.Context, s *recipe.Session, events []event.Event, do func(also []recipe.Op) error, changed ...teller) error {
	var entries [][]byte
	for _, e := range events {
		data, err := e.Encode()
		if err != nil {
			return err
		}
		entries = append(entries, data)
	}
	err := s.Log().Append(ctx, s, entries, do)
	if err == nil {
		for _, c := range changed {
			c.settle()
		}
	}
	return err
}

// Tell writes an event of something that the tree has no record of. It does nothing
// where there are no events.
func (st *Store) Tell(ctx context.Context, kind, subject string, data event.Data) error {
	log := st.session.Log()
	if log == nil {
		return nil
	}
	e := event.New(log.Writer(), kind, subject, st.now(), data)
	return telling(ctx, st.session, []event.Event{e}, func(ops []recipe.Op) error {
		_, err := st.session.Multi(ctx, ops...)
		return err
	})
}

// gone tells of what leaves no record behind.
type gone struct {
	kind, subject string
	data          event.Data
}

func (g gone) told() (string, string, event.Data) { return g.kind, g.subject, g.data }
func (gone) settle()                              {}

// subjects of events.
func (b *Build) subject() string { return "build/" + b.Name() }

func (u *Upload) subject() string  { return path.Join("upload", u.Image+"-"+u.Build, u.Provider, u.ID) }
func (n *Node) subject() string    { return "node/" + n.ID }
func (r *Request) subject() string { return "request/" + r.ID }

func (b *Build) settle()   { b.by = 0 }
func (u *Upload) settle()  { u.by = 0 }
func (n *Node) settle()    { n.by = 0 }
func (r *Request) settle() { r.by = 0 }

func (b *Build) told() (kind, subject string, data event.Data) {
	if b.by == 0 {
		return "", "", nil
	}
	kind, subject, data = b.Event()
	data["by"] = b.by.teller()
	return kind, subject, data
}

// Event is the event of the state that the build is in; kind is "" where there is none.
func (b *Build) Event() (kind, subject string, data event.Data) {
	data = event.Data{"image": b.Image, "build": b.ID, "builder": b.Builder, "formats": slices.Clone([]string(b.Formats))}
	switch b.State {
	case BuildBuilding:
		kind = event.BuildBegan
	case BuildReady:
		kind = event.BuildReady
	case BuildFailed:
		kind, data["reason"], data["exit_code"], data["failures"] = event.BuildFailed, b.Reason, b.ExitCode, b.Failures
	case BuildDeleting:
		kind = event.BuildDeleting
	}
	return kind, b.subject(), data
}

func (u *Upload) told() (kind, subject string, data event.Data) {
	if u.by == 0 {
		return "", "", nil
	}
	kind, subject, data = u.Event()
	data["by"] = u.by.teller()
	return kind, subject, data
}

// Event is the event of the state that the upload is in; kind is "" where there is none.
func (u *Upload) Event() (kind, subject string, data event.Data) {
	data = u.eventData()
	switch u.State {
	case UploadReady:
		kind = event.UploadReady
	case UploadFailed:
		kind, data["reason"], data["failures"] = event.UploadFailed, u.Reason, u.Failures
	case UploadDeleting:
		kind = event.UploadDeleting
	case UploadUploading:
	}
	return kind, u.subject(), data
}

func (u *Upload) eventData() event.Data {
	return event.Data{
		"image": u.Image, "build": u.Build, "provider": u.Provider, "upload": u.ID, "external_id": u.ExternalID.Text(),
	}
}

// told of nodes is what people did with them.
func (n *Node) told() (kind, subject string, data event.Data) {
	if n.by != ByOperator {
		return "", "", nil
	}
	kind, subject, data = n.Event()
	data["by"] = n.by.teller()
	return kind, subject, data
}

// Event is the event of the state that people have brought the node to; kind is "" where
// there is none.
func (n *Node) Event() (kind, subject string, data event.Data) {
	switch n.State {
	case NodeHold:
		kind = event.NodeHeld
	case NodeDeleting:
		kind = event.NodeDeleting
	}
	return kind, n.subject(), event.Data{
		"node": n.ID, "provider": n.Provider, "labels": slices.Clone([]string(n.Type)), "comment": n.Comment, "reason": n.Reason,
	}
}

func (r *Request) told() (kind, subject string, data event.Data) {
	if r.by == 0 {
		return "", "", nil
	}
	return r.Event()
}

// Event is the event of the state that the request is in; kind is "" where there is none.
func (r *Request) Event() (kind, subject string, data event.Data) {
	if r.State != RequestFailed {
		return "", "", nil
	}
	return event.RequestFailed, r.subject(), event.Data{
		"request": r.ID, "labels": slices.Clone([]string(r.NodeTypes)), "requestor": r.Requestor, "reason": r.Reason,
	}
}

// teller is what an event says of who moved a record; who exactly is its source.
func (a Actor) teller() string {
	if a == ByOperator {
		return "operator"
	}
	return ""
}
