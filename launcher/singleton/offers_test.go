package singleton

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// offered is a record of what launcher nl02 offered in provider b.
func offered(left bool, at time.Time, labels ...string) map[string]zkmodel.Offer {
	o := zkmodel.Offer{
		Hostname: "nl02", Provider: "b", Pool: "main", Labels: labels, Left: left, Stat: recipe.Stat{Mtime: at},
	}
	return map[string]zkmodel.Offer{o.Path(): o}
}

// component is a registered pool of launcher nl02 in provider b.
func component(labels ...string) *zkmodel.Component {
	return &zkmodel.Component{
		Hostname: "nl02", ID: "nl02-b-main", Kind: zkmodel.KindPool, PoolName: "main", ProviderName: "b", SupportedLabels: labels,
	}
}

// What is written down of the pools that are registered, and of those that were.
func TestChangedOffers(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		known      map[string]zkmodel.Offer
		registered []*zkmodel.Component
		want       string
	}{
		"a new one":             {nil, []*zkmodel.Component{component("x")}, "[x] here"},
		"the same":              {offered(false, now, "x"), []*zkmodel.Component{component("x")}, ""},
		"a label less":          {offered(false, now, "x", "y"), []*zkmodel.Component{component("y")}, "[y] here"},
		"it has left":           {offered(false, now, "x"), nil, "[x] left"},
		"it is back":            {offered(true, now, "x"), []*zkmodel.Component{component("x")}, "[x] here"},
		"it has left for long":  {offered(true, now.Add(-2*time.Hour), "x"), nil, "forgotten"},
		"its provider broke":    {offered(false, now, "x"), []*zkmodel.Component{component()}, ""},
		"two on one host":       {nil, []*zkmodel.Component{component("y"), component("x", "y")}, "[x y] here"},
		"a component is broken": {offered(false, now, "x"), []*zkmodel.Component{{Broken: fmt.Errorf("no")}}, "[x] left"},
	} {
		t.Run(name, func(t *testing.T) {
			changed, old := changedOffers(tc.known, tc.registered, now.Add(-time.Hour))
			var got []string
			for _, o := range changed {
				got = append(got, fmt.Sprintf("%v %s", o.Labels, map[bool]string{true: "left", false: "here"}[o.Left]))
			}
			for range old {
				got = append(got, "forgotten")
			}
			if s := strings.Join(got, ", "); s != tc.want {
				t.Errorf("%q, want %q", s, tc.want)
			}
		})
	}
}

// offerTree is what is remembered of offers.
type offerTree struct {
	tree
	known map[string]zkmodel.Offer
	did   []string
	fail  bool
}

func (o *offerTree) Known() map[string]zkmodel.Offer { return o.known }

func (o *offerTree) SaveOffer(_ context.Context, offer zkmodel.Offer) error {
	o.did = append(o.did, fmt.Sprintf("save %s left=%t", offer.Provider, offer.Left))
	if o.fail && offer.Provider == "b" {
		return errDown
	}
	return nil
}

func (o *offerTree) ForgetOffer(_ context.Context, offer zkmodel.Offer) error {
	o.did = append(o.did, "forget "+offer.Provider)
	return nil
}

// Catches a pool that is written down as gone for what an old view shows: what two views
// show differently counts after both have caught up.
func TestOffersWaitForBothViews(t *testing.T) {
	o := &offerTree{known: offered(false, now, "x")}
	o.barrier = func() error {
		o.components = []*zkmodel.Component{component("x")}
		return nil
	}
	wantNone(t, NewOffers(time.Minute, o, o, o, fixed, hclog.NewNullLogger()).pass(t.Context()))
	if len(o.did) > 0 {
		t.Errorf("%q", o.did)
	}
}

// Catches an offer that is forgotten before its grace is over, where that is longer
// than an hour.
func TestOffersAreKeptForTheirGrace(t *testing.T) {
	for grace, want := range map[time.Duration]int{time.Minute: 1, 3 * time.Hour: 0} {
		o := &offerTree{known: offered(true, now.Add(-2*time.Hour), "x")}
		wantNone(t, NewOffers(grace, o, o, o, fixed, hclog.NewNullLogger()).pass(t.Context()))
		if len(o.did) != want {
			t.Errorf("with a grace of %s: %q", grace, o.did)
		}
	}
}

// Catches one record that cannot be written and keeps the others from being so.
func TestOneOfferThatCannotBeWritten(t *testing.T) {
	other := component("x")
	other.ProviderName = "c"
	o := &offerTree{tree: tree{components: []*zkmodel.Component{component("x"), other}}, fail: true}
	if err := NewOffers(time.Minute, o, o, o, fixed, hclog.NewNullLogger()).pass(t.Context()); err == nil || len(o.did) != 2 {
		t.Errorf("%v, did %q", err, o.did)
	}
}
