package builder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"poolkeeper/builder/plan"
	"poolkeeper/configs"
	"poolkeeper/providers/fake"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

func (s *site) explain(images ...string) []Explanation {
	s.t.Helper()
	all, err := Explain(s.t.Context(), s.config, s.store, "host.example.org", images...)
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// verdict finds what a rule says about a subject.
func verdict(e Explanation, subject, rule string) plan.Verdict {
	for _, v := range e.Verdicts {
		if v.Subject == subject && v.Rule == rule {
			return v
		}
	}
	return plan.Verdict{}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("other")
	// Before there is anything: no folder, no znode.
	all := s.explain()
	if len(all) != 2 || all[0].Image != "img" || len(all[0].Actions) != 1 || all[0].Actions[0].Kind != plan.Build {
		t.Fatalf("at first: %+v", all)
	}
	if v := verdict(all[1], "build", "formats"); v.Speaks != plan.Against || !strings.Contains(v.Detail, "no format") {
		t.Errorf("without formats: %+v", v)
	}
	if _, err := os.Stat(s.config.ImagesDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("explaining made images-dir: %v", err)
	}
	s.start()
	s.ready("img", 1, "north")
	e := s.explain("img")[0]
	if len(e.Actions) > 0 || e.Next.IsZero() {
		t.Errorf("at rest: %+v", e.Plan)
	}
	for subject, rule := range map[string]string{"build": "due", "upload to north": "done"} {
		if v := verdict(e, subject, rule); v.Speaks != plan.Against {
			t.Errorf("%s, %s: %+v in %+v", subject, rule, v, e.Verdicts)
		}
	}
	if _, err := Explain(t.Context(), s.config, s.store, "host", "none"); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("an unknown image: %v", err)
	}
}

// An upload failed on the builder's host. Explain on a host without a builder, and without images-dir, says
// what that builder waits for, since when it fails, and why.
func TestExplainOfAnotherHost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addProvider("south", "qcow2", "img")
	s.cloud("south").SetHook(func(_ context.Context, c fake.Call) error {
		if c.Op == fake.OpUpload {
			return errors.New("the store is full")
		}
		return nil
	})
	s.start(func(d *Deps) { d.Policy.UploadRetry = plan.Backoff{First: time.Hour, Max: time.Hour} })
	s.ready("img", 1, "north")
	s.eventually("the upload to south failed", func() bool { return len(s.uploads("img", "south", zkmodel.UploadFailed)) == 1 })
	elsewhere := copyOf(s.config)
	elsewhere.ImagesDir = ""
	all, err := Explain(t.Context(), elsewhere, s.store, "desk.example.org", "img")
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]plan.Verdict{}
	for _, v := range all[0].Verdicts {
		if v.Decides {
			states[v.Subject] = v
		}
	}
	south := states["upload to south"]
	if south.Outcome() != "waits" || south.Rule != "back-off" || !strings.HasPrefix(south.Detail, "retry at ") || !strings.Contains(south.Detail, "after 1 failure;") ||
		!strings.Contains(south.Detail, "the store is full") || !strings.HasSuffix(south.Detail, "(on host.example.org)") {
		t.Errorf("upload to south: %+v", south)
	}
	if north, build := states["upload to north"], states["build"]; north.Outcome() != "done" || build.Outcome() != "up to date" {
		t.Errorf("upload to north: %+v; build: %+v", north, build)
	}
}

// A foreign client wrote failed records whose times are years ahead. A build that a user requests begins at once.
func TestRequestWinsOverTimesAhead(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.image().RebuildAge = 0
	ahead := `{"state": "failed", "state_time": 4102444800, "retry_at": 4102444800, "failures": 1000000, "builder": "host.example.org", "builder_id": "x"}`
	if err := s.store.Session().EnsurePath(t.Context(), zkmodel.BuildPath("img", "0000000001")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Session().Set(t.Context(), zkmodel.BuildPath("img", "0000000001"), []byte(ahead), recipe.AnyVersion); err != nil {
		t.Fatal(err)
	}
	if err := s.store.RequestBuild(t.Context(), "img"); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.ready("img", 1, "north")
}

// Explaining beside a daemon does not take its upload for a leftover.
func TestExplainBesideADaemon(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.settings(0).UploadDelay = 1 << 40
	s.start()
	s.eventually("the upload is under way", func() bool { return len(s.uploads("img", "north", zkmodel.UploadUploading)) == 1 })
	if e := s.explain("img")[0]; len(e.Actions) > 0 {
		t.Errorf("to do: %+v", e.Actions)
	}
}

func TestReadyAndCheck(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b, err := New(s.config, s.deps())
	if err != nil {
		t.Fatal(err)
	}
	if b.Ready() == nil {
		t.Error("ready before it runs")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	s.ready("img", 1, "north")
	if err := b.Ready(); err != nil {
		t.Error(err)
	}
	if err := b.Check(t.Context()); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if b.Ready() == nil {
		t.Error("ready after its end")
	}
}

// What stands in the way beside the image itself: a limit that all builders share, and
// a provider whose driver is not ours.
func TestExplainShowsWhatElseStandsInTheWay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("other")
	s.config.MaxConcurrentBuilds = 1
	s.config.Foreign = []configs.ForeignProvider{{Name: "east", Driver: "aws", Images: []string{"other"}}}
	all := s.explain()
	if v := verdict(all[0], "build", "max-concurrent-builds"); v.Speaks != "" || v.Detail == "" {
		t.Errorf("with room: %+v", v)
	}
	if v := verdict(all[1], "build", "formats"); !strings.Contains(v.Detail, "provider east does, whose driver aws is not supported") {
		t.Errorf("a driver that we lack: %+v", v)
	}
	held, err := recipe.NewSemaphore(s.store.Session(), zkmodel.BuildLimitPath, "nb07.example.org", 1).Acquire(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if v := verdict(s.explain("img")[0], "build", "max-concurrent-builds"); v.Speaks != plan.Against || !strings.Contains(v.Detail, "nb07.example.org") {
		t.Errorf("without room: %+v", v)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// What waits for a worker says so: which host has how many, and what they are at.
func TestExplainShowsBusyWorkers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addProvider("south", "qcow2", "img")
	for _, image := range []string{"more", "third"} {
		s.addImage(image)
		for i := range s.config.Providers {
			s.config.Providers[i].DiskImages = append(s.config.Providers[i].DiskImages, configs.ProviderImage{Name: image})
		}
	}
	if v := verdict(s.explain("img")[0], "build", "builder"); v.Speaks != plan.Against {
		t.Errorf("no builder runs: %+v", v)
	}
	wait := filepath.Join(s.dir, "go")
	for i := range s.config.DiskImages {
		s.config.DiskImages[i].EnvVars["FAKE_WAIT"] = wait
	}
	s.start(func(d *Deps) { d.UploadWorkers = 2 })
	s.eventually("one is being built", func() bool { return s.all(zkmodel.BuildBuilding, "img", "more", "third") == 1 })
	other := copyOf(s.config)
	other.ImagesDir = filepath.Join(s.dir, "other images")
	mine := s.config
	s.config = other
	s.start(func(d *Deps) {
		d.Client, d.Hostname, d.FQDN, d.BuildWorkers = s.dial(s.root), "other", "other.example.org", 2
	})
	s.config = mine
	s.eventually("all are being built", func() bool { return s.all(zkmodel.BuildBuilding, "img", "more", "third") == 3 })
	s.addImage("fourth").Formats = []string{"raw"}
	s.eventually("explained: all workers are busy", func() bool {
		e := s.explain("fourth")[0]
		here, there := verdict(e, "build", "--build-workers"), verdict(e, "build", "workers of other.example.org")
		return here.Speaks == plan.Against && strings.HasPrefix(here.Detail, "1 of 1 are busy: ") && strings.HasPrefix(there.Detail, "2 of 2 are busy: ")
	})
}

// One of several providers has not all the workers for uploads.
func TestWorkersOfUploads(t *testing.T) {
	cfg := &configs.Config{Providers: []configs.Provider{
		{Name: "north", DiskImages: []configs.ProviderImage{{Name: "img"}}},
		{Name: "south", DiskImages: []configs.ProviderImage{{Name: "img"}}},
	}}
	upload := func(provider string) plan.Action {
		return plan.Action{Kind: plan.Upload, Image: "img", Build: "0000000001", Provider: provider}
	}
	sent := func(image, provider string) zkmodel.BuilderTransfer {
		return zkmodel.BuilderTransfer{Image: image, Build: "0000000007", Provider: provider}
	}
	for name, c := range map[string]struct {
		uploads []zkmodel.BuilderTransfer
		to      string
		want    plan.Verdict
	}{
		"idle": {nil, "north", plan.Verdict{Subject: "upload to north", Rule: "--upload-workers", Detail: "0 of 2 are busy"}},
		"one provider has its share": {
			[]zkmodel.BuilderTransfer{sent("a", "north")},
			"north",
			plan.Verdict{
				Subject: "upload to north", Rule: "--upload-workers", Speaks: plan.Against,
				Detail: "1 of 2 are busy: a-0000000007 to north; those left are for other providers",
			},
		},
		"another has room": {
			[]zkmodel.BuilderTransfer{sent("a", "north")},
			"south",
			plan.Verdict{Subject: "upload to south", Rule: "--upload-workers", Detail: "1 of 2 are busy: a-0000000007 to north"},
		},
		"all are busy": {
			[]zkmodel.BuilderTransfer{sent("a", "north"), sent("b", "south")},
			"north",
			plan.Verdict{
				Subject: "upload to north", Rule: "--upload-workers", Speaks: plan.Against,
				Detail: "2 of 2 are busy: a-0000000007 to north, b-0000000007 to south",
			},
		},
	} {
		works := []zkmodel.BuilderWork{
			{Host: "elsewhere", UploadWorkers: 9},
			{Host: "here", BuildWorkers: 1, UploadWorkers: 2, Builds: []string{"z"}, Uploads: c.uploads},
		}
		got := workers(works, "here", cfg, []plan.Action{upload(c.to)})
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
