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
	i.Builds[0].Uploads[0].State = zkmodel.UploadUploading
	if trace.Everywhere(i, want, south) || trace.Everywhere(nil, want, south) {
		t.Error("north is under way")
	}
}
