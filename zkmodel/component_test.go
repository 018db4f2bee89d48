package zkmodel_test

import (
	"strings"
	"testing"

	"poolkeeper/zkmodel"
)

// A request waits for a provider that cannot be used only where no other pool can
// serve it, and some pool that has not declined it has all its labels.
func TestWaitsForProvider(t *testing.T) {
	pool := func(id, provider, trouble, offers, has string) *zkmodel.Component {
		return &zkmodel.Component{
			ID: id, ProviderName: provider, Trouble: trouble,
			SupportedLabels: strings.Fields(offers), TroubledLabels: strings.Fields(has),
		}
	}
	never := pool("a", "north", "no such cloud", "", "small large")
	away := pool("b", "south", "connection refused", "small large", "")
	good := pool("c", "east", "", "small", "")
	for name, c := range map[string]struct {
		pools  []*zkmodel.Component
		labels string
		want   string
	}{
		"nobody":                     {nil, "small", ""},
		"never worked":               {[]*zkmodel.Component{never}, "small", "no such cloud"},
		"went away":                  {[]*zkmodel.Component{away}, "large small", "connection refused"},
		"two":                        {[]*zkmodel.Component{never, away}, "large", "no such cloud"},
		"another can":                {[]*zkmodel.Component{never, good}, "small", ""},
		"another can but for one":    {[]*zkmodel.Component{good, never}, "small large", "no such cloud"},
		"nobody has the label":       {[]*zkmodel.Component{never, away, good}, "moon", ""},
		"no label":                   {[]*zkmodel.Component{never}, "", ""},
		"it has declined":            {[]*zkmodel.Component{pool("d", "north", "no such cloud", "", "small")}, "small", ""},
		"a record that is no record": {[]*zkmodel.Component{zkmodel.DecodeComponent("x", []byte("{"))}, "small", ""},
	} {
		r := &zkmodel.Request{NodeTypes: strings.Fields(c.labels), DeclinedBy: []string{"d"}}
		if got := zkmodel.WaitsForProvider(c.pools, r); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := zkmodel.BriefTrouble(strings.Repeat("é", 5000)); len(got) > 1100 || !strings.HasSuffix(got, "é …") {
		t.Errorf("cut to %d bytes", len(got))
	}
}
