package builder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/builder/plan"
	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// unreached is a cloud that repeats its calls while nobody answers, and tells so.
type unreached struct {
	kept

	mu   sync.Mutex
	tell func(error)
}

func (u *unreached) Tell(tell func(error)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tell = tell
}

func (u *unreached) UploadImage(ctx context.Context, _ providers.ImageUpload) (string, error) {
	u.mu.Lock()
	u.tell(errors.New("10.0.0.1:5000 does not answer: connection refused"))
	u.mu.Unlock()
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// Of providers that cannot be opened, or reached, explain of any host, the record in
// the tree, the metrics and the log say so at once, and why; of the good ones nothing.
func TestProvidersThatCannotBeUsedAreTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, name := range []string{"closed", "unreached", "south"} {
		s.addProvider(name, "qcow2", "img")
	}
	mended := make(chan struct{})
	far := &unreached{kept: kept{s.cloud("unreached")}}
	events := recipe.NewLog(event.Root, "/poolkeeper/builder/host")
	registry := prometheus.NewRegistry()
	s.start(func(d *Deps) {
		open := d.Open
		d.Registerer = registry
		d.Client.SetLog(events)
		d.Open = func(c configs.Provider) (providers.Provider, error) {
			if c.Name == "unreached" {
				return far, nil
			}
			select {
			case <-mended:
			default:
				if c.Name == "closed" {
					return nil, errors.New("clouds.yaml has no cloud closed")
				}
			}
			return open(c)
		}
	})
	s.ready("img", 1, "north", "south")
	says := map[string]string{"closed": "clouds.yaml has no cloud closed", "unreached": "connection refused"}
	for _, host := range []string{"host.example.org", "another.example.org"} {
		s.eventually("explain on "+host+" says what is wrong", func() bool {
			all, err := Explain(t.Context(), s.config, s.store, host, "img")
			if err != nil {
				t.Fatal(err)
			}
			for provider, why := range says {
				v := verdict(all[0], "upload to "+provider, "provider")
				if v.Speaks != plan.Against || !strings.Contains(v.Detail, "builder on host") || !strings.Contains(v.Detail, why) {
					return false
				}
			}
			for _, v := range all[0].Verdicts {
				if v.Rule == "provider" && says[strings.TrimPrefix(v.Subject, "upload to ")] == "" {
					t.Errorf("%+v", v)
				}
			}
			return true
		})
	}
	for _, a := range s.explain("img")[0].Actions {
		if a.Kind == plan.Upload && a.Provider == "closed" && !strings.Contains(a.Why, says["closed"]) {
			t.Errorf("to do: %+v", a)
		}
	}
	s.mu.Lock()
	log := s.log.String()
	s.mu.Unlock()
	if !strings.Contains(log, says["closed"]) {
		t.Error("the log does not say why a provider cannot be opened")
	}
	if got, want := usable(t, registry), "closed 0, north 1, south 1, unreached 0"; got != want {
		t.Errorf("metric: %s, want %s", got, want)
	}
	told := func() string {
		reader := events.Read(s.store.Session(), recipe.LogPosition{})
		var list []string
		for {
			entry, ok, err := reader.Poll(t.Context())
			if err != nil || !ok {
				slices.Sort(list)
				return strings.Join(list, ", ")
			}
			if e, err := event.Of(entry); err == nil && strings.HasPrefix(e.Subject, "provider/") {
				list = append(list, strings.TrimPrefix(e.Type, "poolkeeper.provider.")+" "+e.Data["provider"].(string))
			}
		}
	}
	s.eventually("events tell who is down", func() bool { return told() == "down closed, down unreached" })
	close(mended)
	far.mu.Lock()
	far.tell(nil)
	far.mu.Unlock()
	s.ready("img", 1, "closed")
	s.eventually("nothing is wrong any more", func() bool {
		builders, err := s.store.Components(t.Context(), zkmodel.KindBuilder)
		if err != nil {
			t.Fatal(err)
		}
		return len(builders) == 1 && len(builders[0].Troubles) == 0
	})
	s.eventually("events tell who is up, once", func() bool { return told() == "down closed, down unreached, up closed, up unreached" })
}

// usable is what the metric says of each provider.
func usable(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, f := range families {
		if f.GetName() == "poolkeeper_builder_provider_usable" {
			for _, m := range f.GetMetric() {
				list = append(list, fmt.Sprintf("%s %g", m.GetLabel()[0].GetValue(), m.GetGauge().GetValue()))
			}
		}
	}
	return strings.Join(list, ", ")
}
