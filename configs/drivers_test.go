package configs

import (
	"slices"
	"testing"
)

// The table is asked by name. An entry that is there twice would hide the second; one
// without a schema would crash the first file that names it; one whose name only Nodepool
// has would never be asked.
func TestEveryDriverIsOneWholeEntry(t *testing.T) {
	var names []string
	for _, d := range drivers() {
		if d.name == "" || slices.Contains(names, d.name) || foreignDrivers[d.name] {
			t.Errorf("the name %q is empty, taken or another's", d.name)
		}
		names = append(names, d.name)
		p := defaultProvider("cloud", d.name)
		if d.keys == nil || d.keys(newLoader(Options{}), &p)["pools"] == nil {
			t.Errorf("driver %s has no schema with pools", d.name)
		}
	}
	if _, known := driverNamed("punch-cards"); known {
		t.Error("a driver that is not in the table is found")
	}
}

// Settings that were not copied with their configuration would have a guarded reload
// change the limits of the configuration that is in effect.
func TestSettingsAreCopiedWithTheirLimits(t *testing.T) {
	for _, d := range drivers() {
		before := &Config{Providers: []Provider{defaultProvider("cloud", d.name)}}
		after := before.Copy()
		for _, limit := range after.Limits() {
			limit.Set(limit.Get()/2 + 7)
		}
		fresh := defaultProvider("cloud", d.name)
		if !before.Providers[0].Equal(&fresh) {
			t.Errorf("driver %s: a limit of the copy is the original's", d.name)
		}
	}
}
