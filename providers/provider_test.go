package providers_test

import (
	"testing"

	"poolkeeper/providers"
)

// Mistakes: a machine of another launch, or of an installation that counts its nodes from 0, too, is
// taken for a node's own; one of Nodepool, which knows neither, is not.
func TestSameLaunch(t *testing.T) {
	mark := func(site, launch string) map[string]string {
		return map[string]string{providers.MetaSite: site, providers.MetaLaunch: launch}
	}
	for _, c := range []struct {
		a, b map[string]string
		same bool
	}{
		{mark("a", "1"), mark("a", "1"), true},
		{mark("a", "1"), mark("a", "2"), false},
		{mark("a", "1"), mark("b", "1"), false},
		{mark("b", ""), mark("a", "1"), false},
		{mark("", ""), mark("a", "1"), true},
		{mark("a", ""), mark("a", "1"), true},
		{nil, nil, true},
	} {
		if providers.SameLaunch(c.a, c.b) != c.same || providers.SameLaunch(c.b, c.a) != c.same {
			t.Errorf("%v, %v: want %t", c.a, c.b, c.same)
		}
	}
}
