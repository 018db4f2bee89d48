package builder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/builder/plan"
	"poolkeeper/configs"
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
