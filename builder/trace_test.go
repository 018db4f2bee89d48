package builder

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/otlptest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/trace"
)

// A trace tells where the time of a build went, from when it was due until it was ready in
// all providers: two builders, three images, two providers; one image is tried before it
// serves, one fails to be sent at first, one has a build that fails. Mistakes: a root that two
// uploads end, or none, as each waits for the other; parts in another trace.
func TestTraces(t *testing.T) {
	collector := otlptest.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	s := newSite(t)
	s.addImage("plain")
	s.addImage("bad")
	s.config.DiskImages[0].Validate = &configs.Validate{Timeout: 90 * time.Second, Checks: []configs.ValidateCheck{{SSH: true}}}
	s.config.DiskImages[2].EnvVars = configs.EnvVars{"FAKE_FAIL": "3"}
	s.config.Providers = nil
	s.addProvider("north", "qcow2", "img", "plain", "bad")
	s.addProvider("south", "raw", "img", "plain", "bad")
	var failed atomic.Bool
	s.cloud("north").SetHook(func(_ context.Context, c fake.Call) error {
		if c.Op == fake.OpUpload && !c.Done && failed.CompareAndSwap(false, true) {
			return fmt.Errorf("%w: the line is cut", providers.ErrTransient)
		}
		return nil
	})
	traced := func(host string) func(*Deps) {
		tracer, err := trace.Open(t.Context(), trace.About{Service: "poolkeeper-builder", Host: host}, func(s string) string { return s }, func(_ int, err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tracer.Close(context.WithoutCancel(t.Context())) })
		return func(d *Deps) { d.Tracer = tracer }
	}
	s.start(traced("first"))
	s.config.ImagesDir = filepath.Join(s.dir, "other") // of the second builder
	s.start(s.other("second"), traced("second"))
	s.ready("plain", 1, "north", "south")
	s.eventually("it is tried in two providers", func() bool { return len(s.trials("img")) == 2 })
	for _, p := range []string{"north", "south"} {
		s.comesTo("img", p, zkmodel.ValidationPassed, "all checks passed")
	}
	s.ready("img", 1, "north", "south")

	traceOf := func(image, state string) (found otlptest.Trace) {
		s.eventually("a trace of "+image+" that is one tree", func() bool {
			var told bool
			found, told = collector.Trace("build", "image", image)
			return told && found.Untidy() == ""
		})
		t.Logf("\n%s", found)
		if found.Root.Attributes["state"] != state || len(found.Named("make")) != 1 || len(found.Named("command")) != 1 || found.Named("command")[0].Attributes["phase.command"] == "" || found.Root.Parent != "" {
			t.Errorf("\n%s", found)
		}
		if gap, behind := found.Gap(); gap > 5*time.Second {
			t.Errorf("nothing is known of %v behind %s:\n%s", gap, behind, found)
		}
		return found
	}
	plain := traceOf("plain", "ready")
	cut := 0
	for _, u := range plain.Named("upload") {
		if u.Error != "" {
			cut++
		}
		if u.Attributes["provider"] == "" || u.Attributes["upload"] == "" || u.Resource["service.name"] != "poolkeeper-builder" {
			t.Errorf("%+v", u)
		}
	}
	tried := traceOf("img", "ready")
	if len(tried.Named("trial")) != 2 {
		t.Errorf("\n%s", tried)
	}
	for _, u := range tried.Named("upload") {
		if u.Error != "" {
			cut++
		}
	}
	if cut != 1 {
		t.Errorf("%d uploads failed", cut)
	}
	if bad := traceOf("bad", "failed"); bad.Root.Error == "" || bad.Named("command")[0].Error == "" {
		t.Errorf("\n%s", bad)
	}
}

// A build that a newer one replaces before it is everywhere has a root, which ends when the
// newer one is ready; so has that. Mistake: spans below a root that nobody ever tells.
func TestTraceOfReplaced(t *testing.T) {
	collector := otlptest.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	s := newSite(t)
	s.addProvider("south", "raw", "img")
	var replaced atomic.Bool
	s.cloud("south").SetHook(func(_ context.Context, c fake.Call) error {
		if c.Op == fake.OpUpload && !c.Done && !replaced.Load() {
			return fmt.Errorf("%w: no disk", providers.ErrTransient)
		}
		return nil
	})
	tracer, err := trace.Open(t.Context(), trace.About{Service: "poolkeeper-builder"}, func(s string) string { return s }, func(_ int, err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tracer.Close(context.WithoutCancel(t.Context())) })
	s.start(func(d *Deps) { d.Tracer = tracer })
	s.eventually("an upload fails", func() bool { return len(s.uploads("img", "south", zkmodel.UploadFailed)) > 0 })
	first := s.builds("img", zkmodel.BuildReady)[0].ID
	s.askFor("img")
	s.eventually("another build is ready", func() bool { return len(s.builds("img", zkmodel.BuildReady)) == 2 })
	replaced.Store(true)
	traceOf := func(build string) (found otlptest.Trace) {
		s.eventually("a trace of build "+build+" that is one tree", func() bool {
			var told bool
			found, told = collector.Trace("build", "build", build)
			return told && found.Untidy() == "" && len(found.Named("make")) == 1
		})
		t.Logf("\n%s", found)
		return found
	}
	old := traceOf(first)
	next := s.builds("img", zkmodel.BuildReady)
	if old.Root.Attributes["state"] != "replaced" || old.Root.Error != "build "+next[len(next)-1].ID+" is ready" || old.Named("make")[0].From.Before(old.Root.From) {
		t.Errorf("\n%s", old)
	}
	if newer := traceOf(next[len(next)-1].ID); newer.Root.Attributes["state"] != "ready" {
		t.Errorf("\n%s", newer)
	}
}

// The last upload of a build ends its trace, and no other does.
func TestEverywhere(t *testing.T) {
	i := &zkmodel.Image{Name: "img", Builds: []*zkmodel.BuildTree{{Build: &zkmodel.Build{Image: "img", ID: "0000000001"}}}}
	add := func(provider string, mzxid int64, state zkmodel.UploadState) zkmodel.UploadKey {
		u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: "img", Build: "0000000001", Provider: provider, ID: "0000000001"}, State: state}
		u.Stat.Mzxid = mzxid
		i.Builds[0].Uploads = append(i.Builds[0].Uploads, u)
		return u.UploadKey
	}
	want := []string{"north", "south"}
	north := add("north", 5, zkmodel.UploadReady)
	if trace.Everywhere(i, want, north) {
		t.Error("south has none")
	}
	south := add("south", 4, zkmodel.UploadReady)
	if !trace.Everywhere(i, want, north) || trace.Everywhere(i, want, south) {
		t.Error("north was the last")
	}
	// A newer build ends it, if it was ready before the last upload: either tells, never both.
	newer := &zkmodel.Build{Image: "img", ID: "0000000002", State: zkmodel.BuildReady}
	newer.Stat.Czxid = 3
	i.Builds[0].State = zkmodel.BuildReady
	i.Builds = append(i.Builds, &zkmodel.BuildTree{Build: newer})
	for ready, replaced := range map[int64]bool{4: true, 6: false} {
		newer.Stat.Mzxid = ready
		if by := trace.ReplacedBy(i, want, newer); trace.Everywhere(i, want, north) == replaced || (by != nil) != replaced {
			t.Errorf("ready at %d: replaced %v", ready, by)
		}
	}
	i.Builds[0].Uploads[0].State = zkmodel.UploadUploading
	if trace.Everywhere(i, want, south) || trace.Everywhere(nil, want, south) {
		t.Error("north is under way")
	}
}
