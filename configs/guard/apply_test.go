package guard

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
)

// A file that was cut off leaves all limits, and all that is in use is frozen, while
// it runs and at the next start; the same file accepted takes effect.
func TestFileIsCutOff(t *testing.T) {
	whole := load(t, twoClouds)
	before := Of(whole)
	for lines := 2; lines < strings.Count(twoClouds, "\n"); lines++ {
		next := load(t, firstLines(twoClouds, lines))
		items := Judge(before, next, busy())
		running := Apply(next, whole, before, items)
		kept := Keep(before, next, items)
		again := Judge(kept, next, Lives{Unknown: "not read yet"})
		started := Apply(next, nil, kept, again)
		for name, cfg := range map[string]*configs.Config{"running": running, "started": started} {
			for _, n := range busy().Nodes {
				if p, ok := next.Provider(n.Provider); ok {
					if pool, ok := p.Pool(n.Pool); ok && offers(pool, n.Labels[0]) {
						continue
					}
				}
				if cfg.FrozenLabel(n.Provider, n.Pool, n.Labels[0]) == "" {
					t.Errorf("%d lines, %s: label %s of pool %s of %s is not frozen", lines, name, n.Labels[0], n.Pool, n.Provider)
				}
			}
			for _, u := range busy().Uploads {
				if p, ok := next.Provider(u.Provider); ok {
					if _, listed := p.Image(u.Image); listed {
						continue
					}
				}
				if cfg.FrozenUpload(u.Provider, u.Image) == "" {
					t.Errorf("%d lines, %s: image %s of %s is not frozen", lines, name, u.Image, u.Provider)
				}
			}
		}
		if got := Of(running).Limits["providers[east].pools[main].max-servers"]; got != 10 {
			t.Errorf("%d lines: max-servers is %d while it runs", lines, got)
		}
		if diff := cmp.Diff(Of(running).Tenants, before.Tenants); diff != "" {
			t.Errorf("%d lines: limits of tenants (-running +before):\n%s", lines, diff)
		}
		if len(Judge(Keep(kept, next, nil), next, busy())) > 0 {
			t.Errorf("%d lines: what was accepted is guarded again", lines)
		}
	}
}

// What is guarded while a daemon runs is guarded at its next start, by what was kept
// alone, and no longer once the file is mended.
func TestRestartKnowsWhatWasGuarded(t *testing.T) {
	whole := load(t, twoClouds)
	before := Of(whole)
	typo := load(t, change(t, "max-servers: 10", "max-severs: 10", "max-servers: 6", "max-sever: 6"))
	items := Judge(before, typo, busy())
	data, err := Record{Memory: Keep(before, typo, items), File: Of(typo).Digest(), Guarded: items}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	record, err := DecodeRecord(data)
	if err != nil {
		t.Fatal(err)
	}
	started := Apply(typo, nil, record.Memory, Judge(record.Memory, typo, Lives{Unknown: "?"}))
	for provider, want := range map[string]int{"east": 10, "west": 6} {
		p, _ := started.Provider(provider)
		if pool, _ := p.Pool("main"); pool.MaxServers != want {
			t.Errorf("max-servers of %s is %d after a restart, want %d", provider, pool.MaxServers, want)
		}
		if untouched, _ := typo.Provider(provider); untouched.Pools[0].MaxServers != -1 {
			t.Errorf("the file's own configuration was changed")
		}
	}
	if diff := cmp.Diff(items, record.Guarded); diff != "" {
		t.Errorf("guarded (-before +kept):\n%s", diff)
	}
	if got := Judge(record.Memory, whole, busy()); len(got) > 0 {
		t.Errorf("guarded although the file is mended: %v", got)
	}
}

// What cannot be read may have been wrong for long: the limit from before counts.
func TestLimitOutlivesWhatCannotBeRead(t *testing.T) {
	memory := Of(load(t, twoClouds))
	for _, text := range []string{"max-servers: ten", "max-severs: 10"} {
		next := load(t, change(t, "max-servers: 10", text))
		items := Judge(memory, next, busy())
		memory = Keep(memory, next, items)
		if got := memory.Limits["providers[east].pools[main].max-servers"]; got != 10 {
			t.Errorf("after %q the limit is %d", text, got)
		}
	}
}

// Unknown keys that were always there hold no raise; one that appears with it does, for
// as long as it stays, through later files and a restart. It would catch a memory without
// unknown keys (each raise waits for config-accept), and one that takes the typo itself
// for known as soon as it has been judged (the next look lifts the limit).
func TestUnknownKeysThatWereAlwaysThere(t *testing.T) {
	for place, test := range map[string]struct {
		at, limit, key string
		was            int
	}{
		"pool":      {"max-servers: 10", "providers[east].pools[main].max-servers", "        ", 10},
		"provider":  {"max-concurrency: 4", "providers[east].max-concurrency", "    ", 4},
		"top":       {"max-hold-age: 3600", "max-hold-age", "", 3600},
		"label":     {"max-ready-age: 600", "labels[small].max-ready-age", "    ", 600},
		"misplaced": {"max-servers: 10", "providers[east].pools[main].max-servers", "        ", 10},
	} {
		t.Run(place, func(t *testing.T) {
			name, _, _ := strings.Cut(test.at, ":")
			always := test.at + "\n" + test.key + "colour: red"
			raised := name + ": 7200\n" + test.key + "colour: red"
			typo := strings.Replace(always, name, "max-typo", 1)
			more := []string{"cloud: fake", "cloud: fake"}
			if place == "misplaced" { // a pool's key, always at its provider, too
				more[1] += "\n    max-servers: 3"
			}
			old := load(t, change(t, append(more, test.at, always)...))
			before := Of(old)
			if items := Judge(before, load(t, change(t, append(more, test.at, raised)...)), busy()); len(items) > 0 {
				t.Errorf("a raise is held: %v", items)
			}
			next, memory := load(t, change(t, append(more, test.at, typo)...)), before
			for look := range 3 {
				items := Judge(memory, next, busy())
				if len(items) != 1 || items[0].Name != test.limit || items[0].Was != test.was || !strings.HasSuffix(items[0].Why, "unknown key: max-typo") {
					t.Fatalf("look %d: guarded: %v", look, items)
				}
				data, err := Record{Memory: Keep(memory, next, items)}.Encode()
				if err != nil {
					t.Fatal(err)
				}
				record, err := DecodeRecord(data)
				if err != nil {
					t.Fatal(err)
				}
				memory = record.Memory
			}
			if items := Judge(Keep(memory, next, nil), next, busy()); len(items) > 0 {
				t.Errorf("guarded although it was accepted: %v", items)
			}
		})
	}
}

// The same names and limits are the same file, accepted by another release, too.
func TestUnknownKeysAreNotInTheDigest(t *testing.T) {
	one, two := Of(load(t, twoClouds)), Of(load(t, change(t, "max-servers: 10", "max-servers: 10\n        colour: red")))
	if one.Digest() != two.Digest() || cmp.Equal(one, two) {
		t.Errorf("%+v and %+v", one, two)
	}
}

// A copy shares nothing that a limit is set in.
func TestApplyChangesNothingThatItIsGiven(t *testing.T) {
	whole, next := load(t, twoClouds), load(t, firstLines(twoClouds, 28))
	one, two := Of(whole), Of(next)
	items := Judge(one, next, busy())
	if len(items) < 3 {
		t.Fatalf("only %v", items)
	}
	in := Apply(next, whole, one, items)
	for _, l := range in.Limits() {
		l.Set(1)
	}
	in.Providers[0].Pools[0].Labels[0].Name = "x"
	if !reflect.DeepEqual(one, Of(whole)) || !reflect.DeepEqual(two, Of(next)) {
		t.Error("it has")
	}
}

// Of a file nothing is kept but names and limits.
func TestNoSecretIsKept(t *testing.T) {
	cfg := load(t, change(t, "  - name: debian\n", "  - name: debian\n    env-vars: {DIB_PASSWORD: hunter2}\n",
		"{host: 127.0.0.1}", "{host: hunter2}"))
	data, err := Record{Memory: Of(cfg)}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "hunter2") || !strings.Contains(string(data), "debian") {
		t.Errorf("kept: %s", data)
	}
}

// Who cannot read what was in effect leaves all alone that the file does not have.
func TestDoubt(t *testing.T) {
	cfg := Doubt(load(t, firstLines(twoClouds, 28)), "unreadable")
	for what, why := range map[string]string{
		"image": cfg.FrozenImage("other"), "label": cfg.FrozenStock("other"), "provider": cfg.FrozenProvider("west"),
		"image of a provider": cfg.FrozenUpload("east", "other"), "pool": cfg.FrozenPool("east", "spare"),
		"label of a pool": cfg.FrozenLabel("east", "main", "other"),
	} {
		if why != "unreadable" {
			t.Errorf("%s: %q", what, why)
		}
	}
	if why := cfg.FrozenPool("east", "main"); why != "" {
		t.Errorf("what the file has is frozen: %s", why)
	}
}
