package registry_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/registry"
)

// knower is a provider that knows when a credential ends, and how long answers took.
type knower struct {
	providers.Provider
	took float64
}

func (*knower) Close() error { return nil }

func (k *knower) Ends() []providers.End {
	return []providers.End{{Use: providers.EndCredential, Name: "ci", At: time.Unix(77, 0)}}
}

func (k *knower) Calls() []providers.Calls {
	return []providers.Calls{{Operation: "GET servers", Count: 2, Seconds: k.took, Within: map[float64]uint64{1: 1, 5: 2}}}
}

// Each open provider has its figures, and one that is retired none. Mistake: figures of one cloud under the name of
// another.
func TestFiguresAreOfOpenProviders(t *testing.T) {
	r := registry.New(func(s configs.Provider) (providers.Provider, error) {
		return &knower{took: map[string]float64{"north": 3, "south": 4}[s.Name]}, nil
	}, registry.Events{})
	figures := registry.NewFigures(r.Known)
	north, south := section("north", "a"), section("south", "b")
	for _, s := range []configs.Provider{north, south} {
		if err := use(t, r, s).Done(); err != nil {
			t.Fatal(err)
		}
	}
	told := func() string {
		gathered := prometheus.NewPedanticRegistry()
		gathered.MustRegister(figures)
		w := httptest.NewRecorder()
		promhttp.HandlerFor(gathered, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
		return w.Body.String()
	}
	before := told()
	for _, line := range []string{
		`poolkeeper_provider_call_seconds_sum{operation="GET servers",provider="north"} 3`, `poolkeeper_provider_call_seconds_sum{operation="GET servers",provider="south"} 4`,
		`poolkeeper_provider_call_seconds_bucket{operation="GET servers",provider="south",le="1"} 1`, `poolkeeper_provider_credential_expiry_timestamp_seconds{name="ci",provider="north",use="credential"} 77`,
	} {
		if !strings.Contains(before, line) {
			t.Errorf("no %s in\n%s", line, before)
		}
	}
	if err := r.Keep(config(north)); err != nil {
		t.Fatal(err)
	}
	if after := told(); strings.Contains(after, "south") || !strings.Contains(after, "north") {
		t.Errorf("told\n%s", after)
	}
}
