package history

import (
	"cmp"
	"strings"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// What states are an outcome. A node that served has ended well, whatever came then.
var (
	buildEnds   = map[string]Outcome{string(zkmodel.BuildReady): Succeeded, string(zkmodel.BuildFailed): Failed}
	uploadEnds  = map[string]Outcome{string(zkmodel.UploadReady): Succeeded, string(zkmodel.UploadFailed): Failed}
	requestEnds = map[string]Outcome{string(zkmodel.RequestFulfilled): Succeeded, string(zkmodel.RequestFailed): Failed}
	nodeEnds    = map[string]Outcome{
		string(zkmodel.NodeReady): Succeeded, string(zkmodel.NodeInUse): Succeeded, string(zkmodel.NodeUsed): Succeeded,
		string(zkmodel.NodeFailed): Failed, string(zkmodel.NodeAborted): Failed,
	}
)

// ofBuild is the entry of a build as its record is.
func ofBuild(b *zkmodel.Build) *Entry {
	return &Entry{
		Kind: Build, ID: b.Name(), Became: string(b.State), Reason: b.Reason, Begun: begun(b.Stat), Czxid: b.Stat.Czxid,
		Image: b.Image, BuildID: b.ID, Host: b.Builder,
	}
}

// ofUpload is the entry of an upload as its record is.
func ofUpload(u *zkmodel.Upload) *Entry {
	return &Entry{
		Kind: Upload, ID: strings.Join([]string{u.Image + "-" + u.Build, u.Provider, u.ID}, "/"), Became: string(u.State),
		Reason: u.Reason, Begun: begun(u.Stat), Czxid: u.Stat.Czxid,
		Image: u.Image, BuildID: u.Build, Provider: u.Provider, Host: u.Builder,
	}
}

// ofRequest is the entry of a request as its record is.
func ofRequest(r *zkmodel.Request) *Entry {
	return &Entry{
		Kind: Request, ID: r.ID, Became: string(r.State), Reason: r.Reason, Begun: begun(r.Stat), Czxid: r.Stat.Czxid,
		Provider: r.Provider, Labels: r.NodeTypes, Nodes: r.Nodes, Requestor: r.Requestor, EventID: r.EventID, Tenant: r.TenantName,
	}
}

// ofNode is the entry of a node as its record is.
func ofNode(n *zkmodel.Node) *Entry {
	e := &Entry{
		Kind: Node, ID: n.ID, Became: string(n.State), Reason: n.Reason, Begun: begun(n.Stat), Czxid: n.Stat.Czxid,
		Provider: n.Provider, Pool: n.Pool, Labels: n.Type, Host: n.Launcher, Request: n.AllocatedTo, Requestor: n.Requestor, Tenant: n.TenantName,
	}
	if key, err := zkmodel.ParseUploadPath(n.ImageID); err == nil {
		e.Image, e.BuildID = key.Image, key.Build
	}
	return e
}

func begun(s recipe.Stat) time.Time { return s.Ctime.UTC().Truncate(time.Millisecond) }

// since is when a record came into its state; now where it does not tell.
func since(told zkmodel.Epoch, s recipe.Stat, now time.Time) time.Time {
	at := s.Mtime
	if told.Time().Year() > 2000 { // else its writer had no clock
		at = zkmodel.NoLater(told, s)
	}
	if at.IsZero() {
		at = now
	}
	return at.UTC().Truncate(time.Millisecond)
}

// life is what is known of those whose records are there.
type life struct {
	all  map[string]*Entry
	now  func() time.Time
	note func(e *Entry, over bool) // is told of each change; e is not changed any more
}

// see takes in how a record is.
func (l *life) see(e *Entry, at time.Time, final map[string]Outcome) {
	e.bound()
	was := l.all[e.key()]
	if was != nil && was.Czxid != e.Czxid { // it is another of the same name
		l.gone(was.key(), true)
		was = nil
	}
	if was != nil {
		e.merge(was)
	}
	e.come(at, final)
	if was != nil && was.equal(e) {
		return
	}
	l.all[e.key()] = e
	l.note(e, false)
}

// equal reports whether two entries of one record say the same.
func (e *Entry) equal(o *Entry) bool {
	return e.Became == o.Became && e.Reason == o.Reason && e.Request == o.Request && e.Image == o.Image && e.BuildID == o.BuildID &&
		e.Host == o.Host && e.Provider == o.Provider && e.Pool == o.Pool && e.Ended.Equal(o.Ended) && e.Outcome == o.Outcome &&
		cmp.Compare(len(e.Nodes), len(o.Nodes)) == 0
}

// gone takes in that a record is not there any more.
func (l *life) gone(key string, unsure bool) {
	was := l.all[key]
	if was == nil {
		return
	}
	delete(l.all, key)
	e := *was
	e.end(l.now().UTC().Truncate(time.Millisecond), unsure)
	l.note(&e, true)
}
