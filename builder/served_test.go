package builder

import (
	"slices"
	"strings"
	"testing"

	"poolkeeper/configs"
)

// A builder says which providers it serves, so that nobody erases their records, and
// says otherwise when its configuration does.
func TestTellsWhomItServes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addProvider("south", "raw", "img")
	b := s.run()
	serves := func(provider string) bool {
		who, err := s.store.Serving(t.Context(), provider)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.Join(who, " "), "does not say") {
			t.Errorf("whom it serves is not told: %q", who)
		}
		return len(who) > 0
	}
	s.eventually("the builder to say whom it serves", func() bool { return serves("north") && serves("south") })
	if serves("west") {
		t.Error("it serves whom it does not have")
	}
	less := copyOf(s.config)
	less.Providers = slices.DeleteFunc(slices.Clone(less.Providers), func(p configs.Provider) bool { return p.Name == "south" })
	if err := b.Reload(less); err != nil {
		t.Fatal(err)
	}
	s.eventually("the builder to serve less", func() bool { return serves("north") && !serves("south") })
	mistaken := copyOf(less)
	mistaken.Freeze(configs.Frozen{Kind: "provider", Name: "south", Why: "a bad key"})
	if err := b.Reload(mistaken); err != nil {
		t.Fatal(err)
	}
	s.eventually("what is left out to count as served", func() bool { return serves("south") })
}
