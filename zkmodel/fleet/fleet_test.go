package fleet_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"poolkeeper/configs"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/recipe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// town is a tree with a store and two who may push.
type town struct {
	*testing.T
	root     string
	client   *recipe.Client
	session  *recipe.Session
	store    *fleet.Store
	anna, bo *fleet.Key
}

func newTown(t *testing.T) *town {
	t.Helper()
	root := zktest.Root(t)
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: root})
	must(t, err)
	t.Cleanup(client.Close)
	session, err := client.Session(t.Context())
	must(t, err)
	return &town{t, root, client, session, fleet.NewStore(session), newKey(t), newKey(t)}
}

func newKey(t *testing.T) *fleet.Key {
	t.Helper()
	key, err := fleet.NewKey(filepath.Join(t.TempDir(), "key"))
	must(t, err)
	return key
}

func public(t *testing.T, key *fleet.Key) ed25519.PublicKey {
	t.Helper()
	p, err := configs.ParseSigner(key.Public())
	must(t, err)
	return p
}

func (w *town) signers() []ed25519.PublicKey {
	return []ed25519.PublicKey{public(w.T, w.anna), public(w.T, w.bo)}
}

func (w *town) known(v *fleet.Version) bool { return v.Verify(w.signers()) == nil }

// draft is the next version of what is there.
func (w *town) draft(text string) fleet.Draft {
	w.Helper()
	current, seen, err := w.store.Look(w.Context())
	if err != nil && !errors.Is(err, fleet.ErrUndecodable) {
		w.Fatal(err)
	}
	d := fleet.Draft{Text: []byte(text), By: "us@here", Seen: seen, Known: w.known, Now: time.Unix(1_800_000_000, 0)}
	if current != nil {
		d.After, d.Predecessor = current.Number, current.ID()
	}
	return d
}

func (w *town) push(key *fleet.Key, text string) *fleet.Version {
	w.Helper()
	v, err := w.store.Push(w.Context(), key, w.draft(text))
	must(w.T, err)
	return v
}

func (w *town) offer() fleet.Offer {
	w.Helper()
	o, err := w.store.Offer(w.Context(), func(*fleet.Version) bool { return true })
	must(w.T, err)
	return o
}

// What is signed is all that a version says: whatever is altered, or signed by another, is
// refused. It would catch a field that the statement forgets, and a text that runs from one
// field into the next.
func TestWhatIsSigned(t *testing.T) {
	w := newTown(t)
	w.push(w.anna, "one")
	whole := *w.push(w.bo, "two")
	if err := whole.Verify(w.signers()); err != nil {
		t.Fatal(err)
	}
	for name, alter := range map[string]func(v *fleet.Version){
		"number":           func(v *fleet.Version) { v.Number++ },
		"predecessor":      func(v *fleet.Version) { v.Predecessor = "" },
		"digest":           func(v *fleet.Version) { v.Digest = fleet.Digest([]byte("three")) },
		"size":             func(v *fleet.Version) { v.Size++ },
		"time":             func(v *fleet.Version) { v.Time++ },
		"by":               func(v *fleet.Version) { v.By += "x" },
		"message":          func(v *fleet.Version) { v.Message = "x" },
		"rollback":         func(v *fleet.Version) { v.Of = 1 },
		"signer":           func(v *fleet.Version) { v.Signer = w.anna.Public() },
		"signature":        func(v *fleet.Version) { v.Signature[3] ^= 1 },
		"no signature":     func(v *fleet.Version) { v.Signature = nil },
		"from by to more":  func(v *fleet.Version) { v.By, v.Message = "us", "@here" },
		"a line in a text": func(v *fleet.Version) { v.By += "\"\nmessage \"" },
	} {
		v := whole
		v.Signature = bytes.Clone(whole.Signature)
		alter(&v)
		if err := v.Verify(w.signers()); !errors.Is(err, fleet.ErrUnsigned) {
			t.Errorf("%s is altered: %v", name, err)
		}
	}
	for name, signers := range map[string][]ed25519.PublicKey{"no key": nil, "another key": {public(t, w.anna)}} {
		if err := whole.Verify(signers); !errors.Is(err, fleet.ErrUnsigned) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Versions are numbered, each names the one before, and the history has them; two pushes
// that saw the same state do not both happen, and a number that was given is not given again.
func TestPushes(t *testing.T) {
	w := newTown(t)
	if o := w.offer(); !errors.Is(o.Err, fleet.ErrNone) {
		t.Fatalf("offered at first: %+v", o)
	}
	stale := w.draft("stale")
	one := w.push(w.anna, "one")
	two := w.push(w.bo, strings.Repeat("two ", 1<<20))
	if two.Number != 2 || one.Predecessor != "" || two.Predecessor != one.ID() || two.Shards < 1 {
		t.Errorf("pushed %+v, %+v", one, two)
	}
	if o := w.offer(); o.Err != nil || o.Version.ID() != two.ID() || len(o.Text) != 4<<20 {
		t.Errorf("offered %+v", o.Version)
	}
	if _, err := w.store.Push(t.Context(), w.anna, stale); !errors.Is(err, fleet.ErrMoved) {
		t.Errorf("of two pushes the later one: %v", err)
	}
	again := w.draft("again")
	again.After, again.Predecessor = 1, one.ID()
	if _, err := w.store.Push(t.Context(), w.anna, again); !errors.Is(err, fleet.ErrTaken) {
		t.Errorf("a number again: %v", err)
	}
	all, err := w.store.History(t.Context())
	must(t, err)
	if len(all) != 2 || all[0].Version.ID() != one.ID() || all[1].Version.ID() != two.ID() {
		t.Errorf("history %+v", all)
	}
	for range 55 {
		w.push(w.anna, "more")
	}
	all, err = w.store.History(t.Context())
	must(t, err)
	blobs, err := w.session.Children(t.Context(), fleet.BlobsPath)
	must(t, err)
	if len(all) != 50 || len(blobs) != 50 || all[49].Version.Number != 57 {
		t.Errorf("%d versions and %d texts are kept, up to %d", len(all), len(blobs), all[len(all)-1].Version.Number)
	}
}

// A push that waits for another names who is at it.
func TestPushIsHeldUp(t *testing.T) {
	w := newTown(t)
	held, err := recipe.NewLock(w.session, fleet.LockPath, "them@there", recipe.EnsureParents()).Acquire(t.Context())
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := w.store.Push(ctx, w.anna, w.draft("one")); !errors.Is(err, fleet.ErrHeld) || !strings.Contains(err.Error(), "them@there") {
		t.Errorf("held up: %v", err)
	}
	must(t, held.Release(t.Context()))
	w.push(w.anna, "one")
}

// listener is a daemon that takes every text but those that begin with "bad".
type listener struct {
	*fleet.Agent
	log  *bytes.Buffer
	mu   *sync.Mutex
	file string
}

// Write is the log's.
func (l *listener) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Write(p)
}

func (l *listener) says(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.log.String(), text)
}

func (w *town) listener(file string) *listener {
	l := &listener{log: &bytes.Buffer{}, mu: &sync.Mutex{}, file: file}
	l.Agent = fleet.NewAgent("builder", "host", file, func() ([]ed25519.PublicKey, error) { return w.signers(), nil },
		hclog.New(&hclog.LoggerOptions{Output: l}))
	l.Recall()
	return l
}

// takes has the daemon look at what is offered, and returns the text that it runs.
func (l *listener) takes(o fleet.Offer) string {
	l.Offered(o)
	return l.looks()
}

// looks has the daemon look at what it was offered last.
func (l *listener) looks() string {
	k, fresh := l.Pick()
	if fresh && strings.HasPrefix(string(k.Text), "bad") {
		l.Done(errors.New("it is bad"))
		k = l.Running()
	} else {
		l.Done(nil)
	}
	if k == nil {
		return ""
	}
	return string(k.Text)
}

// Whatever is offered, a daemon runs the last good version, says once why it takes no
// other, and takes the next good one.
func TestWhatADaemonTakes(t *testing.T) {
	w := newTown(t)
	file := filepath.Join(t.TempDir(), "deep", "fleet-builder.json")
	l := w.listener(file)
	if got := l.takes(w.offer()); got != "" || l.Self().Reason == "" {
		t.Fatalf("runs %q at first, %+v", got, l.Self())
	}
	one := w.push(w.anna, "one")
	oneOffer := w.offer()
	w.push(w.anna, "two")
	twoOffer := w.offer()
	for _, o := range []fleet.Offer{oneOffer, twoOffer} {
		if got := l.takes(o); got != string(o.Text) || l.Self().Reason != "" {
			t.Fatalf("runs %q, %+v", got, l.Self())
		}
	}
	w.push(w.bo, "three")
	good := w.offer()
	version := func(change func(v *fleet.Version)) *fleet.Version { v := *good.Version; change(&v); return &v }
	outsider := newKey(t)
	foreign, err := fleet.NewStore(w.session).Push(t.Context(), outsider, w.draft("foreign"))
	must(t, err)
	foreignOffer := w.offer()
	for name, bad := range map[string]fleet.Offer{
		"none":              {Err: fleet.ErrNone},
		"undecodable":       {Err: fleet.ErrUndecodable},
		"short of a shard":  {Version: good.Version, Err: recipe.ErrDamaged},
		"older":             oneOffer,
		"another text":      {Version: good.Version, Text: []byte("evil")},
		"an altered number": {Version: version(func(v *fleet.Version) { v.Number = 99 }), Text: good.Text},
		"an outsider's":     foreignOffer,
		"an outsider's 3":   {Version: version(func(v *fleet.Version) { v.Signer, v.Signature = foreign.Signer, foreign.Signature }), Text: good.Text},
	} {
		before := l.says("is not taken")
		for range 3 {
			if got := l.takes(bad); got != "two" || l.Self().Number != 2 || l.Self().Reason == "" {
				t.Errorf("%s: runs %q, %+v", name, got, l.Self())
			}
		}
		if got := l.says("is not taken") - before; got != 1 {
			t.Errorf("%s: it says so %d times:\n%s", name, got, l.log)
		}
		// The same after a start that knows the disk only, or that and what is offered.
		again := w.listener(file)
		if k, _ := again.Pick(); k == nil || string(k.Text) != "two" {
			t.Errorf("%s: begins with %v", name, k)
		}
		if got := again.takes(bad); got != "two" {
			t.Errorf("%s: begins with %q", name, got)
		}
	}
	if got := l.takes(good); got != "three" || l.Self().Reason != "" || l.Self().Number != 3 {
		t.Errorf("runs %q, %+v", got, l.Self())
	}
	// A fork: the number after the one that runs, behind another version.
	fork := w.draft("fork")
	fork.After, fork.Predecessor = 3, one.ID()
	must(t, w.session.DeleteTree(t.Context(), "/poolkeeper/fleet/versions"))
	_, err = w.store.Push(t.Context(), w.anna, fork)
	must(t, err)
	if got := l.takes(w.offer()); got != "three" || !strings.Contains(l.Self().Reason, fleet.ErrFork.Error()) {
		t.Errorf("runs %q, %+v", got, l.Self())
	}
	jump := w.draft("jump")
	jump.After = 9
	jumped, err := w.store.Push(t.Context(), w.anna, jump)
	must(t, err)
	if got := l.takes(w.offer()); got != "jump" || l.Self().Number != 10 {
		t.Errorf("runs %q, %+v", got, l.Self())
	}
	far := w.draft("too far")
	far.After, far.Predecessor = 10+fleet.MaxJump, ""
	_, err = w.store.Push(t.Context(), w.anna, far)
	must(t, err)
	if got := l.takes(w.offer()); got != "jump" || !strings.Contains(l.Self().Reason, fleet.ErrJump.Error()) {
		t.Errorf("runs %q, %+v", got, l.Self())
	}
	back := w.draft("back")
	back.After, back.Predecessor = 10, jumped.ID()
	_, err = w.store.Push(t.Context(), w.anna, back)
	must(t, err)
	if got := l.takes(w.offer()); got != "back" {
		t.Errorf("runs %q, %+v", got, l.Self())
	}
	w.push(w.anna, "bad one")
	if got := l.takes(w.offer()); got != "back" || !strings.Contains(l.Self().Reason, "version 12: it is bad") || l.Self().Refused != 12 {
		t.Errorf("runs %q, %+v", got, l.Self())
	}
}

// A writer of the tree without a key changes nothing of what daemons run, whatever he does
// to the tree; the next push mends it.
func TestAWriterWithoutAKey(t *testing.T) {
	w := newTown(t)
	w.push(w.anna, "one")
	first, _, err := w.session.Get(t.Context(), fleet.CurrentPath)
	must(t, err)
	two := w.push(w.bo, "two")
	second, _, err := w.session.Get(t.Context(), fleet.CurrentPath)
	must(t, err)
	daemons := []*listener{w.listener(filepath.Join(t.TempDir(), "a")), w.listener(filepath.Join(t.TempDir(), "b"))}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	var mu sync.Mutex
	texts := make([]map[string]bool, len(daemons))
	for i, l := range daemons {
		texts[i] = map[string]bool{}
		group.Go(func() {
			_ = fleet.Follow(ctx, w.client, l.Agent, func() {
				text := l.looks()
				mu.Lock()
				defer mu.Unlock()
				texts[i][text] = true
			}, func(error) {})
		})
	}
	settled := func(what string, is func(m fleet.Member) bool) {
		t.Helper()
		for _, l := range daemons {
			zktest.Eventually(t, func() bool { return is(l.Self()) }, "%s: %+v", what, l.Self())
		}
	}
	settled("begin", func(m fleet.Member) bool { return m.Number == 2 && m.Reason == "" })
	set := func(path string, data []byte) func() {
		return func() { _, err := w.session.Set(t.Context(), path, data, recipe.AnyVersion); must(t, err) }
	}
	for _, attack := range []struct {
		name string
		do   func()
	}{
		{"garbage", set(fleet.CurrentPath, []byte("{}"))},
		{"an older version", set(fleet.CurrentPath, first)},
		{"another number", set(fleet.CurrentPath, bytes.Replace(second, []byte(`"number":2`), []byte(`"number":7`), 1))},
		{"another text", set(fleet.CurrentPath, bytes.Replace(second, []byte(two.Digest), []byte(fleet.Digest([]byte("evil"))), 1))},
		{"all gone", func() { must(t, w.session.DeleteTree(t.Context(), "/poolkeeper/fleet")) }},
	} {
		for _, l := range daemons {
			l.takes(fleet.Offer{Version: two, Text: []byte("two")})
		}
		attack.do()
		settled(attack.name, func(m fleet.Member) bool { return m.Number == 2 && m.Reason != "" })
	}
	d := w.draft("three")
	d.After, d.Predecessor = 2, two.ID()
	_, err = w.store.Push(t.Context(), w.anna, d)
	must(t, err)
	settled("the next push", func(m fleet.Member) bool { return m.Number == 3 && m.Reason == "" })
	for i := range texts {
		zktest.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return texts[i]["three"]
		}, "it has told of the next push")
	}
	mu.Lock()
	defer mu.Unlock()
	for i := range texts {
		if len(texts[i]) != 2 || !texts[i]["two"] {
			t.Errorf("it ran %v", texts[i])
		}
	}
}

// Who pushes is told what goes, and nothing else: not what stays, what is left out because
// of a mistake, or what the version that runs did not have either.
func TestLosses(t *testing.T) {
	const head = "zookeeper-servers: [{host: h}]\nimages-dir: d\n"
	load := func(text string) *configs.Config {
		cfg, err := configs.Load("nodepool.yaml", configs.Options{Text: []byte(head + text)})
		must(t, err)
		return cfg
	}
	site := func(images, uploads, labels string) string {
		return "labels: [{name: small}, {name: large}]\ndiskimages: [" + images + "]\nproviders:\n" +
			"- {name: east, driver: fake, cloud: c, diskimages: [" + uploads + "], pools: [{name: main, labels: [" + labels + "]}]}\n" +
			"- {name: west, driver: fake, cloud: c, diskimages: [{name: a}], pools: [{name: main, labels: [{name: small, diskimage: a, min-ram: 1}]}]}\n"
	}
	small, large := "{name: small, diskimage: a, min-ram: 1}", "{name: large, diskimage: a, min-ram: 1}"
	before := load(site("{name: a}, {name: b}", "{name: a}, {name: b}", small+", "+large))
	image := func(name string, builds ...*zkmodel.BuildTree) *zkmodel.Image {
		return &zkmodel.Image{Name: name, Builds: builds}
	}
	upload := func(provider string) *zkmodel.Upload {
		return &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Provider: provider}, State: zkmodel.UploadReady}
	}
	build := func(id, state string, uploads ...*zkmodel.Upload) *zkmodel.BuildTree {
		return &zkmodel.BuildTree{Build: &zkmodel.Build{ID: id, State: zkmodel.BuildState(state)}, Uploads: uploads}
	}
	images := []*zkmodel.Image{
		image("a", build("1", "ready", upload("east"), upload("west"))),
		image("b", build("1", "ready", upload("east")), build("2", "ready", upload("east")), build("3", "building")),
		image("neighbour", build("1", "ready", upload("east"))),
	}
	nodes := []*zkmodel.Node{
		{Provider: "east", Pool: "main", Type: []string{"large"}},
		{Provider: "east", Pool: "main", Type: []string{"large"}},
		{Provider: "east", Pool: "main", Type: []string{"small"}},
		{Provider: "neighbour", Pool: "main", Type: []string{"large"}},
	}
	for name, one := range map[string]struct {
		before *configs.Config
		next   string
		want   string
	}{
		"the same": {before, site("{name: a}, {name: b}", "{name: a}, {name: b}", small+", "+large), ""},
		"an image": {
			before, site("{name: a}", "{name: a}", small+", "+large),
			"image b: the build 3, which is under way, is not wanted any more; image b: 2 builds with their files; image b: 2 uploads in provider east",
		},
		"uploads":   {before, site("{name: a}, {name: b}", "{name: a}", small+", "+large), "image b: 2 uploads in provider east"},
		"a label":   {before, site("{name: a}, {name: b}", "{name: a}, {name: b}", small), "label large of pool main of provider east: 2 nodes"},
		"a mistake": {before, site("{name: a}, {name: b, rebuild-age: often}", "{name: a}, {name: b}", small+", "+large), ""},
		"the first": {
			nil, site("{name: a}, {name: b}", "{name: a}, {name: b}", small+", "+large),
			"image neighbour: 1 build with their files; image neighbour: 1 upload in provider east; label large of pool main of provider neighbour: 1 node",
		},
	} {
		if got := strings.Join(fleet.Losses(one.before, load(one.next), images, nodes), "; "); got != one.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, one.want)
		}
	}
}

// A version whose text lacks a shard is refused, and is accepted soon after the shard is back,
// without another push. Catches: a daemon that refuses it until it is restarted.
func TestAMissingShardComesBack(t *testing.T) {
	w := newTown(t)
	one := w.push(w.anna, "one")
	shard := fleet.BlobsPath + "/" + one.Blob
	names, err := w.session.Children(t.Context(), shard)
	must(t, err)
	shard += "/" + names[0]
	data, _, err := w.session.Get(t.Context(), shard)
	must(t, err)
	must(t, w.session.Delete(t.Context(), shard, recipe.AnyVersion))
	l := w.listener(filepath.Join(t.TempDir(), "a"))
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { _ = fleet.Follow(ctx, w.client, l.Agent, func() { l.looks() }, func(error) {}) })
	zktest.Eventually(t, func() bool { return l.Self().Refused == 1 }, "the version is refused: %+v", l.Self())
	_, err = w.session.Create(t.Context(), shard, data, recipe.Persistent)
	must(t, err)
	zktest.Eventually(t, func() bool { return l.Self().Number == 1 && l.Self().Reason == "" }, "the version runs: %+v", l.Self())
}
