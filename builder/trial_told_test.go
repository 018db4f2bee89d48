package builder

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// Two images are sent to two providers, of which one has a launcher that tries uploads and
// the other one that does not. An hour passes, and what is tried then comes to its ends: the
// log, an event and the metrics tell each of it once. Mistakes: an hour that nobody tells of, or
// tells of again; an end without its event; a launcher that does not know counted as one
// that does; a line for each image or each look.
func TestTrialsAreTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("other")
	for i := range s.config.DiskImages {
		s.config.DiskImages[i].Validate = &configs.Validate{Timeout: time.Minute, Checks: []configs.ValidateCheck{{SSH: true}}}
	}
	s.config.Providers = nil
	s.addProvider("north", "qcow2", "img", "other")
	s.addProvider("south", "qcow2", "img", "other")
	pool := func(provider, knows string) {
		t.Helper()
		c := &zkmodel.Component{Kind: zkmodel.KindPool, Hostname: "l1", ProviderName: provider, PoolName: "main", State: zkmodel.ComponentRunning, Knows: []string{knows}}
		data, err := c.Encode()
		if err == nil {
			err = s.store.Session().EnsurePath(t.Context(), zkmodel.ComponentsRoot+"/"+zkmodel.KindPool)
		}
		if err == nil {
			_, err = s.store.Session().Create(t.Context(), zkmodel.ComponentsRoot+"/"+zkmodel.KindPool+"/"+provider+knows, data, recipe.Ephemeral)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	pool("north", zkmodel.KnowsCanaries)
	pool("south", zkmodel.KnowsValidation)
	clock, registry := &testClock{now: time.Now()}, prometheus.NewRegistry()
	events := recipe.NewLog(event.Root, "/poolkeeper/builder/host")
	b := s.run(func(d *Deps) {
		d.Now, d.Registerer = clock.Now, registry
		d.Client.SetLog(events)
	})
	s.eventually("all are tried", func() bool { return len(s.trials("img"))+len(s.trials("other")) == 4 })
	passes := func(d time.Duration) {
		clock.move(d)
		b.control.Wake() // its alarm clock is real
	}
	logged := func(line string) []string {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.DeleteFunc(strings.Split(s.log.String(), "\n"), func(l string) bool { return !strings.Contains(l, line) })
	}
	const nobody = "Uploads wait that no launcher of their provider tries"
	passes(30 * time.Second)
	passes(31 * time.Second)
	s.eventually("the log says that nobody tries", func() bool { return len(logged(nobody)) > 0 })
	hour := map[string]int{"untried img north": 1, "untried img south": 1, "untried other north": 1, "untried other south": 1}
	passes(time.Hour)
	s.eventually("events tell of the hour", func() bool { return cmp.Equal(told(s, events), hour) })
	for metric, least := range map[string]float64{
		"poolkeeper_builder_validation_untried_seconds provider=north": 3600,
		"poolkeeper_builder_validation_untried_seconds provider=south": 3600,
		"poolkeeper_builder_validations provider=north state=waiting":  2,
	} {
		s.eventually(metric, func() bool { return figures(t, registry)[metric] >= least })
	}
	passes(time.Hour)
	s.comesTo("img", "south", zkmodel.ValidationPassed, "")
	s.comesTo("other", "south", zkmodel.ValidationFailed, "kernel panic")
	hour["validated img south"], hour["rejected other south"] = 1, 1
	s.eventually("events tell of the ends", func() bool { return cmp.Equal(told(s, events), hour) })
	for _, metric := range []string{
		"poolkeeper_builder_validations_total image=img provider=south result=serves",
		"poolkeeper_builder_validations_total image=other provider=south result=rejected",
	} {
		s.eventually(metric, func() bool { return figures(t, registry)[metric] == 1 })
	}
	s.eventually("nothing waits in south", func() bool {
		_, waits := figures(t, registry)["poolkeeper_builder_validation_untried_seconds provider=south"]
		return !waits
	})
	pool("north", zkmodel.KnowsValidation)
	s.eventually("the log says that there is a launcher", func() bool {
		return len(logged("No upload waits for a launcher that tries uploads any more")) == 1
	})
	if lines := logged(nobody); len(lines) != 1 || !strings.Contains(lines[0], "provider=north") {
		t.Errorf("said: %q", lines)
	}
	if diff := cmp.Diff(hour, told(s, events)); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// told counts the events of trials: what, of which image, where.
func told(s *site, events *recipe.Log) map[string]int {
	s.t.Helper()
	kinds := map[string]string{event.UploadUntried: "untried", event.UploadTested: "validated", event.UploadRejected: "rejected"}
	list := map[string]int{}
	for reader := events.Read(s.store.Session(), recipe.LogPosition{}); ; {
		entry, ok, err := reader.Poll(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if !ok {
			return list
		}
		if e, err := event.Of(entry); err == nil && kinds[e.Type] != "" {
			list[fmt.Sprint(kinds[e.Type], " ", e.Data["image"], " ", e.Data["provider"])]++
		}
	}
}

// figures are the figures of gauges and counters, by name and labels.
func figures(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetName() + "=" + label.GetValue()
			}
			all[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return all
}

// A provider leaves the configuration of its only builder while an upload is tried there, and
// comes back: the trial goes on with what was sent, and the one in the other provider never
// stopped. Mistakes: a trial that is ended by a configuration that may be mended in a minute;
// a lock that is held for a provider that is not served; an image that is sent again.
func TestProviderIsAwayDuringATrial(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addProvider("south", "qcow2", "img")
	s.image().Validate = &configs.Validate{Timeout: time.Minute, Checks: []configs.ValidateCheck{{SSH: true}}}
	b := s.run()
	s.eventually("it is tried in both", func() bool { return len(s.trials("img")) == 2 })
	before, sent := s.trials("img"), s.inCloud("north")
	without := copyOf(s.config)
	without.Providers = slices.DeleteFunc(slices.Clone(without.Providers), func(p configs.Provider) bool { return p.Name == "north" })
	if err := b.Reload(without); err != nil {
		t.Fatal(err)
	}
	s.eventually("nobody holds it", func() bool { return s.inLine("img", "north") == 0 })
	if n := s.inLine("img", "south"); n != 1 || len(s.trials("img")) != 2 {
		t.Errorf("in the other provider %d hold it; tried are %v", n, s.trials("img"))
	}
	s.comesTo("img", "north", zkmodel.ValidationPassed, "")
	s.comesTo("img", "south", zkmodel.ValidationPassed, "")
	s.eventually("it serves in one", func() bool { return len(s.uploads("img", "south", zkmodel.UploadReady)) == 1 })
	if u := s.uploads("img", "north", zkmodel.UploadUploading); len(u) != 1 {
		t.Errorf("in the provider that is away: %v", u)
	}
	if err := b.Reload(copyOf(s.config)); err != nil {
		t.Fatal(err)
	}
	s.ready("img", 1, "north", "south")
	if u := s.uploads("img", "north", zkmodel.UploadReady); u[0].ExternalID.Text() != before["north"].ExternalID || !slices.Equal(sent, s.inCloud("north")) {
		t.Errorf("sent again: %v, was %+v", s.inCloud("north"), before["north"])
	}
}
