package configs

import (
	"maps"
	"slices"
	"testing"
)

// samples are the annotated files that operators start from.
var samples = []string{"poolkeeper.yaml", "openstack.yaml", "kubernetes.yaml", "metastatic.yaml", "aws.yaml", "loadtest.yaml"}

func sampleOptions() Options {
	return Options{
		SecurePath: "secure.yaml", Strict: true,
		Env: environment(map[string]string{"NODEPOOL_ZK_PASSWORD": "word"}),
	}
}

func TestSamplesAreFlawless(t *testing.T) {
	for _, path := range samples {
		opts := sampleOptions()
		if path != "openstack.yaml" {
			opts.SecurePath = "" // it is the secure file of that one
		}
		config, err := Load(path, opts)
		if err != nil {
			t.Errorf("%s:\n%v", path, err)
			continue
		}
		for _, warning := range config.Warnings {
			t.Errorf("warning: %s", warning)
		}
	}
}

// A key that no sample shows is a key that nobody finds.
func TestSamplesHaveEveryKey(t *testing.T) {
	hidden := map[string]bool{
		"provider nodepool-id": true, "static node ssh-port": true, "provider max-projects": true,
		"pool public-ip-address": true, "image filter Name": true, "image filter Values": true, // for files of older versions only
		"fake network": true, // for tests, which answer there
	}
	known, used := map[string]bool{}, map[string]bool{}
	for _, path := range samples {
		l := newLoader(sampleOptions())
		l.watch = &observer{
			known: func(kind, key string) { known[kind+" "+key] = true },
			used:  func(kind, key string) { used[kind+" "+key] = true },
		}
		main, err := l.read(path)
		if err != nil {
			t.Fatal(err)
		}
		secure, err := l.read("secure.yaml")
		if err != nil {
			t.Fatal(err)
		}
		l.decodeSecure("secure.yaml", secure)
		l.decodeMain(path, main)
	}
	if len(known) < 150 {
		t.Errorf("only %d keys are known, the test sees too little", len(known))
	}
	for _, key := range slices.Sorted(maps.Keys(known)) {
		if !used[key] && !hidden[key] {
			t.Errorf("no sample has the key %q", key)
		}
	}
}
