package history

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// How often things are done.
const (
	writeEvery = 5 * time.Second  // after a change
	markEvery  = 10 * time.Minute // it is noted that everything was recorded until now
	lookEvery  = time.Second      // at images at most: a change of one reads all of its builds
	againAfter = time.Minute      // a file that cannot be written is tried again
	shortest   = 10 * time.Second // of what counts as a gap: a restart is none
)

// maxPending is how many changes wait for a file that cannot be written.
const maxPending = 20_000

// Deps is what a Recorder is given. Nodes and Requests say what the tree follows beside images.
type Deps struct {
	Client          *recipe.Client
	Tree            *zkmodel.Mirror // which others run
	Nodes, Requests bool
	Store           *Store
	Logger          hclog.Logger
}

// Recorder writes into a Store what the mirror of a daemon shows.
type Recorder struct {
	Deps

	writeEvery, lookEvery, againAfter, shortest time.Duration

	now func() time.Time

	life    life
	pending []Change
	gaps    []Gap
	lost    int       // changes for which there was no room
	seen    time.Time // until then everything was recorded; zero where nothing ever was
	anew    int       // Store.Anew of the file that was written last
	loaded  bool      // the life is what the file has
	why     string    // nothing was recorded since seen
	failed  error     // of the last write
}

// NewRecorder makes a Recorder.
func NewRecorder(d Deps) *Recorder {
	r := &Recorder{
		Deps: d, writeEvery: writeEvery, lookEvery: lookEvery, againAfter: againAfter, shortest: shortest,
		now: time.Now, why: "the daemon did not run",
	}
	r.life = life{all: map[string]*Entry{}, now: func() time.Time { return r.now() }, note: r.noted}
	return r
}

// Run records until ctx ends, and closes the Store then. What goes wrong is logged, and tried again.
func (r *Recorder) Run(ctx context.Context) {
	defer r.Store.Close()
	for ctx.Err() == nil {
		err := r.Client.Serve(ctx, func(ctx context.Context, _ *recipe.Session) error {
			return r.session(ctx)
		})
		if errors.Is(err, recipe.ErrClosed) {
			break
		}
		_ = clock.Sleep(ctx, time.Second) // or ctx has ended, which is looked at
	}
	r.write()
}

// session records for as long as a session lives.
func (r *Recorder) session(ctx context.Context) error {
	images, nodes, requests := r.subscribe()
	for _, sub := range []*recipe.Subscription{images, nodes, requests} {
		if sub != nil {
			defer sub.Close()
		}
	}
	if err := r.Tree.WaitSynced(ctx); err != nil {
		return err
	}
	if r.open(); !r.seen.IsZero() && r.now().Sub(r.seen) >= r.shortest {
		r.gaps = append(r.gaps, Gap{From: r.seen, To: r.now().UTC(), Why: r.why})
	}
	r.lookAtAll()
	r.why = "the daemon had no session with ZooKeeper"
	r.write()
	defer func() { r.write() }()
	write, mark, look := time.NewTimer(r.writeEvery), time.NewTicker(markEvery), time.NewTimer(r.lookEvery)
	write.Stop()
	look.Stop()
	defer write.Stop()
	defer mark.Stop()
	defer look.Stop()
	for waits, looks := false, false; ; {
		if len(r.pending) > 0 && !waits {
			waits = true
			write.Reset(r.pause())
		}
		select {
		case <-changesOf(images):
			if !looks {
				looks = true
				look.Reset(r.lookEvery)
			}
		case <-look.C:
			looks = false
			r.lookAtImages(images.Take())
		case <-changesOf(nodes):
			r.lookAtNodes(nodes.Take())
		case <-changesOf(requests):
			r.lookAtRequests(requests.Take())
		case <-write.C:
			waits = false
			r.write()
		case <-mark.C:
			r.write()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pause is how long changes wait until they are written.
func (r *Recorder) pause() time.Duration {
	if r.failed != nil {
		return r.againAfter
	}
	return r.writeEvery
}

func (r *Recorder) subscribe() (images, nodes, requests *recipe.Subscription) {
	images = r.Tree.SubscribeImages()
	if r.Nodes {
		nodes = r.Tree.SubscribeNodes()
	}
	if r.Requests {
		requests = r.Tree.SubscribeRequests()
	}
	return images, nodes, requests
}

func changesOf(s *recipe.Subscription) <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.C()
}

// open opens the file, if it is not, and takes over what it has.
func (r *Recorder) open() bool {
	err := r.Store.Open()
	if err == nil && !r.loaded {
		var all []*Entry
		var seen time.Time
		if all, seen, err = r.Store.Live(); err == nil {
			r.loaded, r.seen = true, seen
			for _, e := range all {
				if r.life.all[e.key()] == nil {
					r.life.all[e.key()] = e
				}
			}
		}
	}
	if err != nil {
		r.tell(err)
	}
	return err == nil
}

// tell counts errors, and logs the first of alike errors, and the end of them.
func (r *Recorder) tell(err error) {
	if err != nil {
		r.Store.failures.Add(1)
	}
	switch {
	case err != nil && r.failed == nil:
		r.Logger.Warn("The history cannot be written; it is tried again", "file", r.Store.Path(), "error", err)
	case err == nil && r.failed != nil:
		r.Logger.Info("The history is written again", "file", r.Store.Path())
	}
	r.failed = err
}

// noted takes a change.
func (r *Recorder) noted(e *Entry, over bool) {
	if n := len(r.pending); n > 0 && r.pending[n-1].Entry.key() == e.key() && r.pending[n-1].Entry.Czxid == e.Czxid {
		r.pending = r.pending[:n-1] // the later one says it all
	}
	if len(r.pending) >= maxPending {
		r.pending = slices.Delete(r.pending, 0, maxPending/10)
		r.lost += maxPending / 10
	}
	r.pending = append(r.pending, Change{e, over})
}

// write writes what waits, and that all was recorded until now.
func (r *Recorder) write() {
	if !r.open() {
		return
	}
	if r.lost > 0 {
		r.gaps = append(r.gaps, Gap{From: r.seen, To: r.now().UTC(), Why: "the file could not be written"})
	}
	r.refill()
	err := r.Store.Write(r.pending, r.gaps)
	if errors.Is(err, ErrDamaged) {
		r.refill()
		err = r.Store.Write(r.pending, r.gaps)
	}
	if r.tell(err); err == nil {
		r.pending, r.gaps, r.lost, r.seen = nil, nil, 0, r.now().UTC()
	}
}

// refill has all that is live written into a file that was begun anew.
func (r *Recorder) refill() {
	if anew := r.Store.Anew(); anew != r.anew {
		r.anew = anew
		var all []Change
		for _, e := range r.life.all {
			all = append(all, Change{Entry: e})
		}
		r.pending = append(all, r.pending...)
	}
}

// lookAtAll takes in all of the tree. What the file has and the tree has not was gone in a gap.
func (r *Recorder) lookAtAll() {
	there := map[string]bool{}
	unread := map[string]bool{}
	for _, image := range r.Tree.Images() {
		r.seeImage(image, there)
		unread[image.Name] = image.Unread != nil
	}
	if r.Nodes {
		for _, n := range r.Tree.Nodes() {
			r.seeNode(n)
			there[string(Node)+"/"+cut(n.ID)] = true
		}
	}
	if r.Requests {
		for _, q := range r.Tree.Requests() {
			r.seeRequest(q)
			there[string(Request)+"/"+cut(q.ID)] = true
		}
	}
	for key, e := range r.life.all {
		unsure := (e.Kind == Build || e.Kind == Upload) && unread[e.Image] // it may be there
		if !there[key] && !unsure && r.follows(e.Kind) {
			r.life.gone(key, true)
		}
	}
}

// follows reports whether the tree shows records of a kind.
func (r *Recorder) follows(kind Kind) bool {
	switch kind {
	case Node:
		return r.Nodes
	case Request:
		return r.Requests
	case Build, Upload:
	}
	return true
}

// seeImage takes in the builds and uploads of an image, and notes which are there.
func (r *Recorder) seeImage(image *zkmodel.Image, there map[string]bool) {
	for _, b := range image.Builds {
		e := ofBuild(b.Build)
		e.bound()
		there[e.key()] = true
		if b.Broken == nil {
			r.life.see(e, since(b.StateTime, b.Stat, r.now()), buildEnds)
		}
		for _, u := range b.Uploads {
			e := ofUpload(u)
			e.bound()
			there[e.key()] = true
			if u.Broken == nil {
				r.life.see(e, since(u.StateTime, u.Stat, r.now()), uploadEnds)
			}
		}
	}
}

func (r *Recorder) seeNode(n *zkmodel.Node) {
	if n.Broken == nil {
		r.life.see(ofNode(n), since(n.StateTime, n.Stat, r.now()), nodeEnds)
	}
}

func (r *Recorder) seeRequest(q *zkmodel.Request) {
	if q.Broken == nil {
		r.life.see(ofRequest(q), since(q.StateTime, q.Stat, r.now()), requestEnds)
	}
}

func (r *Recorder) lookAtImages(names []string) {
	for _, name := range names {
		if name == zkmodel.Folder {
			continue
		}
		image := r.Tree.Image(name)
		there := map[string]bool{}
		r.seeImage(image, there)
		if image.Unread != nil {
			continue // what is not seen may be there
		}
		for key, e := range r.life.all {
			if (e.Kind == Build || e.Kind == Upload) && e.Image == cut(name) && !there[key] {
				r.life.gone(key, false)
			}
		}
	}
}

func (r *Recorder) lookAtNodes(ids []string) {
	for _, id := range ids {
		if n := r.Tree.Node(id); n != nil {
			r.seeNode(n)
		} else if id != zkmodel.Folder {
			r.life.gone(string(Node)+"/"+cut(id), false)
		}
	}
}

func (r *Recorder) lookAtRequests(ids []string) {
	for _, id := range ids {
		if q := r.Tree.Request(id); q != nil {
			r.seeRequest(q)
		} else if id != zkmodel.Folder {
			r.life.gone(string(Request)+"/"+cut(id), false)
		}
	}
}
