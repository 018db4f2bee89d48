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

// A pretended machine answers at this host. An address elsewhere would be asked for its
// keys, and be sent commands.
func TestNetworksOfThisHost(t *testing.T) {
	for network, good := range map[string]bool{
		"127.1.0.0/24": true, "127.1.0.0/30": true,
		"10.0.0.0/24": false, "127.1.0.1/24": false, "127.1.0.0/31": false, "127.1.0.0": false, "[1]": false,
	} {
		text := "providers: [{name: pretended, driver: fake, fake: {network: " + network + "}}]\n"
		_, err := Load(write(t, "nodepool.yaml", site+text), Options{Env: alone(), Strict: true})
		if (err == nil) != good {
			t.Errorf("%s: %v", network, err)
		}
	}
}
