package builder

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"poolkeeper/builder/plan"
	"poolkeeper/zkmodel"
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
	s := newSite(t)
	s.config.Providers[0].Fake.UploadDelay = 1 << 40
	s.start()
	s.eventually("the upload is under way", func() bool { return len(s.uploads("img", "north", zkmodel.UploadUploading)) == 1 })
	if e := s.explain("img")[0]; len(e.Actions) > 0 {
		t.Errorf("to do: %+v", e.Actions)
	}
}

func TestReadyAndCheck(t *testing.T) {
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
