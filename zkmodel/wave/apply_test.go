package wave

import (
	"errors"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// connected is a session below a root of its own.
func connected(t *testing.T) *recipe.Session {
	t.Helper()
	c, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: zktest.Root(t), Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	session, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// ahead is a clock that is an hour ahead.
type ahead struct{}

func (ahead) Now() time.Time                                    { return time.Now().Add(time.Hour) }
func (ahead) AfterFunc(d time.Duration, f func()) clock.Stopper { return time.AfterFunc(d, f) }

// A client wrote a request and never its params. The wave stays open at first; later it is rejected with the reason, which
// its status and its report have.
func TestWaveWithoutParamsIsRejected(t *testing.T) {
	t.Parallel()
	ctx, session := t.Context(), connected(t)
	store := NewStore(session)
	if err := session.EnsurePath(ctx, requestsPath); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Create(ctx, requestsPath+"/bare", []byte(`{"jobs": 2, "max_failures": "1"}`), recipe.Persistent); err != nil {
		t.Fatal(err)
	}
	held, err := store.Queue().Take(ctx, "bare", "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(ctx, held, "bare"); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("at first: %v", err)
	}
	if _, err := store.Open(clock.With(ctx, clock.From(ahead{})), held, "bare"); !errors.Is(err, ErrRejected) {
		t.Errorf("after an hour: %v", err)
	}
	const why = "its params were not written within 5m0s"
	e, err := store.Wave(ctx, "bare")
	if err != nil || e.Status.State != Failed || !strings.Contains(e.Status.Note, why) {
		t.Errorf("the wave: %+v, %v", e, err)
	}
	if rows, _, err := store.Rows(ctx, "bare", States(), 9); err != nil || len(rows) > 0 {
		t.Errorf("its jobs: %v, %v", rows, err)
	}
	if report, err := store.Queue().Result(ctx, "bare"); err != nil || !strings.Contains(string(report), why) {
		t.Errorf("its report: %s, %v", report, err)
	}
}

// Mistakes: a wave that withdraws its request and takes one with it that has replaced it, which is
// another wave's or a person's, whether that comes before the flag is marked or after; one that
// leaves its own.
func TestAWaveWithdrawsNoFlagButItsOwn(t *testing.T) {
	t.Parallel()
	ctx, session := t.Context(), connected(t)
	store, models := NewStore(session), zkmodel.NewStore(session, nil)
	jobs := []Job{{Image: "alone"}, {Image: "before"}, {Image: "after"}, {Image: "plain"}, {Image: "twice"}}
	if made, err := store.Create(ctx, &Wave{ID: "mine", MaxFailures: "0"}, jobs); err != nil || !made {
		t.Fatalf("create: %v, %v", made, err)
	}
	held, err := store.Queue().Take(ctx, "mine", "test")
	if err != nil {
		t.Fatal(err)
	}
	d, err := store.Open(ctx, held, "mine")
	if err != nil {
		t.Fatal(err)
	}
	var asked []Change
	for rank := range jobs {
		asked = append(asked, Change{rank, Step{Progress: Progress{State: Processing}, Flag: FlagMade}})
	}
	if err := d.Apply(ctx, asked, nil); err != nil {
		t.Fatal(err)
	}
	withdraw := func(rank int) Change {
		return Change{rank, Step{Progress: Progress{State: Cancelled}, Flag: FlagTaken}}
	}
	replace := func(image string) {
		t.Helper()
		if err := store.Ask(ctx, &Wave{ID: "other-" + image, MaxFailures: "0", Follow: true}, Job{Image: image}); err != nil {
			t.Fatal(err)
		}
	}
	flag := func(image string) (recipe.Stat, bool) {
		t.Helper()
		stat, there, err := session.Exists(ctx, zkmodel.RequestBuildPath(image))
		if err != nil {
			t.Fatal(err)
		}
		return stat, there
	}
	asks := func(id, image string, want bool) {
		t.Helper()
		now, there := flag(image)
		if not, err := store.Anothers(ctx, id, image, now.Czxid); not == want || !there || err != nil {
			t.Errorf("the flag of %s is not of %s: %v, %v; there %v", image, id, not, err, there)
		}
		// What was seen, and is not there any more, is not judged.
		if not, err := store.Anothers(ctx, id, image, now.Czxid-1); not || err != nil {
			t.Errorf("a flag of %s that is gone is another's: %v, %v", image, not, err)
		}
	}

	seen, _ := flag("before")
	replace("before")
	before, _ := flag("before")
	if ops, err := d.take(ctx, zkmodel.RequestBuildPath("before"), seen); len(ops) > 0 || err != nil {
		t.Errorf("the flag that replaced ours before it was marked goes: %v, %v", ops, err)
	}
	if now, there := flag("before"); !there || now.Czxid != before.Czxid {
		t.Errorf("the request of another wave: there %v, %+v", there, now)
	}
	asks("mine", "before", false)

	for rank, by := range map[int]func(string){2: replace, 3: func(image string) {
		t.Helper()
		if err := models.RequestBuild(ctx, image); err != nil {
			t.Fatal(err)
		}
	}} {
		ops, err := d.steps(ctx, withdraw(rank))
		if err != nil {
			t.Fatal(err)
		}
		by(jobs[rank].Image)
		if err := d.write(ctx, d.Status, ops); !errors.Is(err, recipe.ErrVersion) {
			t.Errorf("%s: withdrawn: %v", jobs[rank].Image, err)
		}
		if _, there := flag(jobs[rank].Image); !there {
			t.Errorf("the later request of %s is gone", jobs[rank].Image)
		}
		asks("mine", jobs[rank].Image, false)
	}
	asks("other-after", "after", true)

	// A driver that died after it had marked the flag; the next withdraws it.
	if _, err := d.steps(ctx, withdraw(4)); err != nil {
		t.Fatal(err)
	}
	asks("mine", "twice", true)
	if err := d.Apply(ctx, []Change{withdraw(0), withdraw(1), withdraw(2), withdraw(3), withdraw(4)}, nil); err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs {
		_, there := flag(job.Image)
		if want := job.Image != "alone" && job.Image != "twice"; there != want {
			t.Errorf("%s is asked for: %v", job.Image, there)
		}
	}
}
