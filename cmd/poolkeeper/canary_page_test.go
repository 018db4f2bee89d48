package main

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	shown "poolkeeper/test/pages"
	"poolkeeper/zkmodel"
)

// The configuration and the commands of docs/canary.md, as they stand there: the page's
// values are the defaults, and the commands print what the page says. Mistakes: a page that
// shows what no command says; a canary that nobody can see; what is said of an upload that has passed its trial and waits for a
// canary, as if it were tried yet.
func TestCanaryPage(t *testing.T) {
	config, store := rollbackSite(t)
	store = store.WithCanaries(true)
	blocks, err := shown.Read("../../docs/canary.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(config) //nolint:gosec // the test's own
	if err != nil {
		t.Fatal(err)
	}
	const images = "diskimages: [{name: debian-12, elements: [debian]}, {name: fedora, elements: [fedora]}]\n"
	var yaml string
	var lines []shown.Block
	for _, b := range blocks {
		switch b.Lang {
		case "yaml":
			yaml += b.Text
		case "console":
			lines = append(lines, b)
		}
	}
	with := func(block string) *configs.Config {
		t.Helper()
		changed := strings.Replace(string(text), images, strings.TrimRight(block, "\n")+"\n  - {name: fedora, elements: [fedora], canary: {}}\n", 1)
		if err := os.WriteFile(config, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := configs.Load(config, configs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	cfg := with(yaml)
	if one, all := cfg.CanaryOf("debian-12"), cfg.CanaryOf("fedora"); one == nil || all == nil || *one != *all || one.For != 2*time.Hour {
		t.Errorf("the page has %+v, the defaults are %+v", one, all)
	}
	i, err := store.Image(t.Context(), "debian-12")
	if err != nil {
		t.Fatal(err)
	}
	for _, provider := range []string{"north", "south"} {
		if err := store.BeginCanaries(t.Context(), zkmodel.NewCanary(provider, "debian-12", i.Builds[1].Build)); err != nil {
			t.Fatal(err)
		}
		c, err := store.Canary(t.Context(), provider, "debian-12")
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range i.Builds[2].Uploads {
			if u.Provider == provider {
				c = c.Begin(u, i.Builds[2].Build, zkmodel.EpochOf(time.Now()))
			}
		}
		c.Trial.Nodes = 4
		if err := store.ChangeCanary(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	shows := func(command, want string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"-c", config}, wordsOfLine(t, command)...), &stdout, &stderr)
		if code != 0 || !regexp.MustCompile(want).MatchString(stdout.String()) {
			t.Errorf("%s: exit %d, no %s\n%s%s", command, code, want, &stdout, &stderr)
		}
	}
	shows("image-list --detail", `0000000003 \| \d+ \| south +\| debian-12 .*\| canary: of 4 nodes 0 did not boot`)
	shows("explain debian-12", `canary at north +no: build 0000000003 does not serve all new nodes: canary: of 4 nodes`)
	shows("explain --all debian-12", `build 0000000002 +keep +yes +it serves at north until a newer one is proven`)
	if ran := printsAsShown(t, config, lines); ran != 2 {
		t.Errorf("%d commands ran", ran)
	}
	north, err := store.Canary(t.Context(), "north", "debian-12")
	if err != nil || north.Trial != nil || north.Promoted.Build != "0000000003" {
		t.Errorf("%+v %v", north, err)
	}
	south, err := store.Canary(t.Context(), "south", "debian-12")
	if err != nil || south.Trial != nil || south.Promoted.Build != "0000000002" {
		t.Errorf("%+v %v", south, err)
	}
	// What is sent waits for its trial, or for a canary alone.
	for provider, want := range map[string]string{
		"north": "waits no more: it is promoted, and serves all new nodes once its builder has made it ready",
		"south": "serves without more ado; its trial is over",
	} {
		v := &zkmodel.Validation{ExternalID: "id"}
		if provider == "north" {
			v.Result = &zkmodel.ValidationResult{State: zkmodel.ValidationPassed}
		}
		lock, err := store.LockUploads(t.Context(), "debian-12", "0000000003", provider)
		if err != nil {
			t.Fatal(err)
		}
		u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: "debian-12", Build: "0000000003", Provider: provider}}
		err = store.CreateUpload(t.Context(), lock, u)
		u.ExternalID = zkmodel.TextValue("id")
		if err := errors.Join(err, store.BeginValidation(t.Context(), lock, u, v)); err != nil {
			t.Fatal(err)
		}
		shows("image-promote debian-12-0000000003 --provider "+provider, "(?m)^debian-12 in "+provider+": build 0000000003 "+want+"$")
	}
}

// What cannot be a canary is refused, with line and key.
func TestCanaryIsDecodedStrictly(t *testing.T) {
	config, _ := rollbackSite(t)
	text, err := os.ReadFile(config) //nolint:gosec // the test's own
	if err != nil {
		t.Fatal(err)
	}
	for settings, want := range map[string]string{
		"{share: 5}":         "expected a share of nodes",
		"{share: 0%}":        "expected a share of nodes",
		"{share: 101%}":      "expected a share of nodes",
		"{for: soon}":        "expected seconds, or a time",
		"{for: 0}":           "expected seconds, or a time",
		"{min-nodes: 0}":     "min-nodes",
		"{max-failures: -1}": "max-failures",
		"{retreat: maybe}":   "expected one of keep, delete",
		"{shares: 5%}":       "shares",
		"yes":                "canary",
	} {
		changed := strings.Replace(string(text), "elements: [debian]}", "elements: [debian], canary: "+settings+"}", 1)
		if err := os.WriteFile(config, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{"-c", config, "config-validate"}, &stdout, &stderr); code == 0 || !strings.Contains(stdout.String()+stderr.String(), want) {
			t.Errorf("%s: exit %d: %s%s", settings, code, &stdout, &stderr)
		}
	}
}
