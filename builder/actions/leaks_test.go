package actions

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// search looks for leaked images in a cloud.
func (r *room) search(provider string) error {
	r.t.Helper()
	return r.lookForLeaks(r.t.Context(), r.config, provider)
}

// found checks what the searches of north have found, and remember.
func (r *room) found(want ...string) {
	r.t.Helper()
	lock, err := recipe.NewLock(r.Store.Session(), "/test", "", recipe.EnsureParents()).Acquire(r.t.Context())
	r.must(err)
	found, _, err := r.Store.Findings(r.t.Context(), lock, "north")
	r.must(errors.Join(err, lock.Release(r.t.Context())))
	var got []string
	for id := range found {
		got = append(got, id)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		r.t.Errorf("found are %q, want %q", got, want)
	}
}

// leak puts images into north that have no record, one more for each mark that is not ours.
func (r *room) leak() {
	key := zkmodel.UploadKey{Image: "img", Build: "0000000055", Provider: "north", ID: "0000000001"}
	r.north.images = []providers.Image{
		image("another site's", key, providers.MetaSite, "theirs"),
		image("another cloud's", key, providers.MetaProvider, "south"),
		image("unmarked", key, providers.MetaUpload, ""),
		image("odd", key, providers.MetaUpload, "1/../2"),
		image("leaked", key),
	}
}

// Mistake: an image is deleted that a search has found once only, or that is of another installation, provider, or
// of nobody who can be told.
func TestLeakedImagesGoInTheSecondSearch(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.leak()
	all := []string{"another site's", "another cloud's", "unmarked", "odd", "leaked"}
	r.must(r.search("north"))
	r.north.holds(t, all...)
	r.found("leaked")
	r.must(r.search("north"))
	r.north.holds(t, all[:4]...)
	r.found()
	if !slices.Equal(r.leaked, []string{"north"}) || !r.said.has("Leaked image deleted") {
		t.Errorf("counted %q; logged:\n%s", r.leaked, r.said.text.String())
	}
	if locked, err := recipe.Locked(t.Context(), r.Store.Session(), zkmodel.LeakLockPath("north")); err != nil || locked {
		t.Errorf("locked: %t, %v", locked, err)
	}
}

// Mistake: an image with a record is taken for leaked; or one that its record does not name is kept for ever.
func TestImagesWithARecord(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	b := r.build()
	named := r.upload(b, zkmodel.UploadReady, known)
	r.upload(b, zkmodel.UploadUploading)
	r.upload(b, zkmodel.UploadReady) // its record names none
	for _, state := range []zkmodel.UploadState{zkmodel.UploadDeleting, zkmodel.UploadFailed} {
		r.upload(b, state, func(u *zkmodel.Upload) { u.ExternalID = zkmodel.TextValue("another") })
	}
	var want []string
	for _, i := range r.north.images {
		want = append(want, i.ExternalID)
	}
	r.north.images = append(r.north.images, image("its double", named.UploadKey))
	r.must(r.search("north"))
	r.found("its double")
	r.must(r.search("north"))
	r.found()
	r.north.holds(t, want...)
}

// Mistake: an image goes although a configuration that came while the cloud was asked leaves its provider out.
func TestLeakIsProvenByTheNewestConfiguration(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.leak()
	r.must(r.search("north"))
	decisions := 0
	r.Deciding = func(context.Context) func() {
		if decisions++; decisions == 2 {
			r.config.Frozen = []configs.Frozen{{Kind: "provider", Name: "north", Why: "it is wrong"}}
		}
		return func() {}
	}
	r.must(r.search("north"))
	r.north.holds(t, "another site's", "another cloud's", "unmarked", "odd", "leaked")
	if len(r.leaked) > 0 || decisions != 2 {
		t.Errorf("counted %q after %d decisions", r.leaked, decisions)
	}
}

// seen is a tree as a test says that it looks.
type seen struct {
	Tree
	unread, absent error
	image          *zkmodel.Image // nil is what it is
}

func (s seen) Unread(path string) error {
	if s.unread != nil {
		return s.unread
	}
	return s.Tree.Unread(path)
}

func (s seen) Absent(ctx context.Context, by *recipe.Session, path string) (zkmodel.Proof, error) {
	if s.absent != nil {
		return zkmodel.Proof{}, s.absent
	}
	return s.Tree.Absent(ctx, by, path)
}

func (s seen) Image(name string) *zkmodel.Image {
	if s.image != nil {
		return s.image
	}
	return s.Tree.Image(name)
}

// hold takes a lock until the session ends.
func (r *room) hold(path string) {
	r.t.Helper()
	_, err := recipe.NewLock(r.Store.Session(), path, "", recipe.EnsureParents()).Acquire(r.t.Context())
	r.must(err)
}

// Mistake: what one search has found counts although one after it has failed, or this host's clock is wrong; or something is
// deleted without the lock, in a cloud that is left out, or that has a record by now.
func TestSearchesThatDeleteNothing(t *testing.T) {
	t.Parallel()
	down := errors.New("the cloud is down")
	frozen := func(f configs.Frozen) func(*room) {
		return func(r *room) { f.Why = "it is wrong"; r.config.Frozen = []configs.Frozen{f} }
	}
	for name, c := range map[string]struct {
		between func(*room)
		want    error
		found   []string // behind it
	}{
		"the list fails":         {between: func(r *room) { r.north.lists = down }, want: down},
		"the cloud has no lists": {between: func(r *room) { r.north.lists = providers.ErrNotSupported }},
		"our clock is wrong":     {between: func(r *room) { r.ClockOff = func() time.Duration { return time.Hour } }, found: []string{"leaked"}},
		"it was found just now":  {between: func(r *room) { r.LeakAge = time.Hour }, found: []string{"leaked"}},
		"the cloud does not delete": {
			between: func(r *room) { r.north.deletes = map[string]error{"leaked": down} }, want: down, found: []string{"leaked"},
		},
		"the image is frozen":     {between: frozen(configs.Frozen{Kind: "image", Name: "img"})},
		"the provider is frozen":  {between: frozen(configs.Frozen{Kind: "provider", Name: "north"})},
		"the provider is gone":    {between: func(r *room) { r.north.listing = func() { r.config = &configs.Config{} } }},
		"a record cannot be read": {between: func(r *room) { r.Tree = seen{Tree: r.Tree, unread: recipe.ErrUnread} }, want: recipe.ErrUnread},
		"its absence is unproven": {
			between: func(r *room) { r.Tree = seen{Tree: r.Tree, absent: zkmodel.ErrRecorded} }, want: zkmodel.ErrRecorded, found: []string{"leaked"},
		},
		"another searches": {between: func(r *room) { r.hold(zkmodel.LeakLockPath("north")) }, want: recipe.ErrLocked, found: []string{"leaked"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			r.leak()
			r.must(r.search("north"))
			c.between(r)
			if err := r.search("north"); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			r.north.holds(t, "another site's", "another cloud's", "unmarked", "odd", "leaked")
			if len(r.leaked) > 0 || r.said.has("Leaked image deleted") {
				t.Errorf("counted %q; logged:\n%s", r.leaked, r.said.text.String())
			}
			r.found(c.found...)
		})
	}
	r := newRoom(t)
	r.leak()
	r.client.Close()
	if err := r.search("north"); err == nil || r.north.looks > 0 {
		t.Errorf("without a session: %d looks, %v", r.north.looks, err)
	}
}

// Mistake: a record that has come, or has changed, since a search saw none that names the image, does not count.
func TestLeakIsProvenByTheRecordItself(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	b := r.build()
	before := *r.mirror.Image("img")
	before.Builds = nil
	u := r.upload(b, zkmodel.UploadReady, known)
	r.Tree = seen{Tree: r.Tree, image: &before}
	for range 2 {
		r.must(r.search("north"))
	}
	r.north.holds(t, "of "+u.ID)
	r.found()

	r.Tree = r.mirror
	r.north.images = append(r.north.images, image("its double", u.UploadKey))
	r.must(r.search("north"))
	lock, _, err := r.Store.LockUpload(t.Context(), u.UploadKey)
	r.must(err)
	if err := r.search("north"); !errors.Is(err, recipe.ErrLocked) {
		t.Errorf("its record is locked: %v", err)
	}
	r.north.holds(t, "of "+u.ID, "its double")
	r.must(lock.Release(t.Context()))
	r.must(r.search("north"))
	r.north.holds(t, "of "+u.ID)
	if r.there(u.Path()); len(r.leaked) != 1 {
		t.Errorf("counted %q", r.leaked)
	}
}

// slots are machines that exist already.
type slots struct {
	*cloud
	providers.Slotter
}

// Mistake: a provider of machines that exist is searched for images; one that cannot be opened counts as searched.
func TestProvidersWithoutImages(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.leak()
	if err := r.search("nowhere"); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("got %v", err)
	}
	r.Use = func(*configs.Config, string) (providers.Provider, func(), error) {
		return slots{cloud: r.north}, func() {}, nil
	}
	if err := r.search("north"); err != nil || r.north.looks > 0 {
		t.Errorf("%d looks, %v", r.north.looks, err)
	}
}

// Mistake: nobody searches a second time; clouds that are left out are searched; a search that fails is told to nobody, or one is
// told that another makes.
func TestPatrol(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.leak()
	r.LeakAge = time.Millisecond
	r.hold(zkmodel.LeakLockPath("south"))
	for _, name := range []string{"frozen", "nowhere"} {
		r.config.Providers = append(r.config.Providers, configs.Provider{Name: name})
	}
	r.config.Frozen = []configs.Frozen{{Kind: "provider", Name: "frozen", Why: "it is wrong"}}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Patrol(ctx) }()
	zktest.Eventually(t, func() bool { return r.said.has("Leaked image deleted") && r.said.has("provider=nowhere") }, "leaks are found")
	stop()
	<-done
	for _, name := range []string{"frozen", "south", "north"} {
		if r.said.has("Cannot look for leaked images: provider=" + name) {
			t.Errorf("told of %s:\n%s", name, r.said.text.String())
		}
	}
}

// hand is a clock that a test moves.
type hand struct {
	mu     sync.Mutex
	timers []func() // of doubtEvery
}

func (h *hand) Now() time.Time { return time.Now() }

func (h *hand) AfterFunc(d time.Duration, f func()) clock.Stopper {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d == doubtEvery {
		h.timers = append(h.timers, f)
	}
	return h
}

func (h *hand) Stop() bool { return true }

// fire ends the timer that was begun last, once there are two: the first search, and the looks for what is doubted.
func (h *hand) fire() bool {
	h.mu.Lock()
	var f func()
	if n := len(h.timers); n > 1 {
		f = h.timers[n-1]
		h.timers = h.timers[:n-1]
	}
	h.mu.Unlock()
	if f != nil {
		f()
	}
	return f != nil
}

// Mistake: between its searches a builder lists all clouds, or not even those that seem to have lost an image.
func TestPatrolLooksSoonerForWhatIsDoubted(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.LeakAge = time.Hour
	b := r.build()
	r.upload(b, zkmodel.UploadReady, known)
	var rounds atomic.Int64
	config := r.Config
	r.Config = func() *configs.Config { rounds.Add(1); return config() }
	h := &hand{}
	ctx, stop := context.WithCancel(clock.With(t.Context(), clock.From(h)))
	done := make(chan struct{})
	go func() { defer close(done); r.Patrol(ctx) }()
	zktest.Eventually(t, func() bool { return h.fire() && rounds.Load() > 0 }, "a look")
	before := rounds.Load()
	zktest.Eventually(t, func() bool { return h.fire() && rounds.Load() > before }, "another look")
	looks := r.north.listed()
	if looks > 0 {
		t.Error("the cloud is listed although nothing is doubted")
	}
	r.upload(b, zkmodel.UploadReady, doubt)
	r.must(r.mirror.Barrier(t.Context()))
	zktest.Eventually(t, func() bool { h.fire(); return r.north.listed() > looks }, "what is doubted is looked for")
	stop()
	<-done
}
