package builder

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/builder/plan"
	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Mistake: 0 bytes that are free, for which an alarm rings, where nobody knows.
func TestFreeSpaceIsToldOnceItIsKnown(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry, newStats(nil, "", nil))
	if err != nil {
		t.Fatal(err)
	}
	told := func(free int64, want bool) {
		t.Helper()
		in := plan.Input{Image: &zkmodel.Image{Name: "img"}, Config: &configs.Config{}}
		in.Host.Free = free
		m.Snapshot(in)
		if got := strings.Contains(linesOf(t, registry), "disk_free"); got != want {
			t.Errorf("%d bytes: told %t, want %t", free, got, want)
		}
	}
	if strings.Contains(linesOf(t, registry), "disk_free") {
		t.Error("told before anything is known")
	}
	told(7, true)
	told(-1, false)
	told(0, true)
}

// Mistake: an image that is gone has a line again at each look, as long as the tree has its
// empty folder, which nobody removes.
func TestAnEmptyFolderHasNoLine(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry, newStats(nil, "", nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]plan.Input{
		"gone":       {},
		"configured": {Config: &configs.Config{DiskImages: []configs.DiskImage{{Name: "configured"}}}},
		"built":      {Image: &zkmodel.Image{Builds: []*zkmodel.BuildTree{{Build: &zkmodel.Build{ID: "0000000001"}}}}},
		"asked":      {Image: &zkmodel.Image{BuildRequested: &recipe.Stat{}}},
		"unreadable": {Image: &zkmodel.Image{Unread: zkmodel.ErrNotFound}},
		"here":       {Local: []plan.LocalBuild{{ID: "0000000001"}}},
	} {
		if in.Config == nil {
			in.Config = &configs.Config{}
		}
		if in.Image == nil {
			in.Image = &zkmodel.Image{}
		}
		in.Image.Name = name
		m.Snapshot(in)
		if has := strings.Contains(linesOf(t, registry), `"`+name+`"`); has != (name != "gone") {
			t.Errorf("%s: has a line: %v", name, has)
		}
	}
}

// Images and providers that are gone leave no line in the metrics; those that are left
// keep theirs.
func TestSeriesOfWhatIsGone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("other")
	s.addProvider("south", "raw", "img", "other")
	s.cloud("north").SetEnds(providers.End{Use: providers.EndCA, Name: "/etc/ca.pem", At: time.Unix(77, 0)})
	s.cloud("south").SetEnds(providers.End{Use: providers.EndPassword, Name: "ci", At: time.Unix(88, 0)})
	registry := prometheus.NewRegistry()
	b := s.run(func(d *Deps) { d.Registerer, d.Resync = registry, 100*time.Millisecond })
	s.ready("img", 1, "north", "south")
	s.ready("other", 1, "south")
	before := linesOf(t, registry)
	for _, name := range []string{"img", "other", "north", "south"} {
		if !strings.Contains(before, `"`+name+`"`) {
			t.Fatalf("no line of %s in\n%s", name, before)
		}
	}
	for _, line := range []string{
		`poolkeeper_provider_certificate_expiry_timestamp_seconds name="/etc/ca.pem" provider="north" use="ca"`,
		`poolkeeper_provider_credential_expiry_timestamp_seconds name="ci" provider="south" use="password"`,
	} {
		if !strings.Contains(before, line) {
			t.Errorf("no %s in\n%s", line, before)
		}
	}
	emptied := copyOf(s.config)
	emptied.DiskImages, emptied.Providers[1].DiskImages = emptied.DiskImages[:1], nil
	if err := b.Reload(emptied); err != nil {
		t.Fatal(err)
	}
	s.eventually("the image has no line any more", func() bool { return !strings.Contains(linesOf(t, registry), `"other"`) })
	next := copyOf(emptied)
	next.Providers = next.Providers[:1]
	s.eventually("south is empty", func() bool { return len(s.inCloud("south")) == 0 })
	if err := b.Reload(next); err != nil {
		t.Fatal(err)
	}
	s.eventually("the provider has no line any more", func() bool { return !strings.Contains(linesOf(t, registry), `"south"`) })
	after := linesOf(t, registry)
	for _, name := range []string{"img", "north"} {
		if !strings.Contains(after, `"`+name+`"`) {
			t.Errorf("no line of %s in\n%s", name, after)
		}
	}
}

// linesOf is what a registry tells, with names and values of labels.
func linesOf(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			all.WriteString(family.GetName())
			for _, label := range metric.GetLabel() {
				fmt.Fprintf(&all, " %s=%q", label.GetName(), label.GetValue())
			}
			all.WriteString("\n")
		}
	}
	return all.String()
}
