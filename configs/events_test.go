package configs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Mistakes: a sink that says two things or none, what is no address, path or pattern, a
// key that can be guessed or is for nobody; a finding that does not say where it is.
func TestWrongEventsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"events: {keep: 1}": "events.keep",
		"events: {sinks: [{name: a, file: /a, command: /b}]}":                                                         "one of webhook, command and file",
		"events: {sinks: [{name: a}]}":                                                                                "one of webhook, command and file",
		"events: {sinks: [{file: /a}]}":                                                                               "\"name\" is missing",
		"events: {sinks: [{name: a, file: a}]}":                                                                       "begins with /",
		"events: {sinks: [{name: a, webhook: chat.example.org}]}":                                                     "https://",
		"events: {sinks: [{name: a, file: /a, match: '[b'}]}":                                                         "no pattern",
		"events: {sinks: [{name: a, file: /a}]}\n---secure---events: {sinks: [{name: a, key: short}]}":                "at least 16",
		"events: {sinks: [{name: a, file: /a}]}\n---secure---events: {sinks: [{name: b, key: 0123456789abcdef0123}]}": "no event sink \"b\"",
	} {
		main, secure, _ := strings.Cut(text, "---secure---")
		dir := t.TempDir()
		opts := Options{Env: alone(), Strict: true, SecurePath: filepath.Join(dir, "secure.yaml")}
		files := map[string]string{"nodepool.yaml": "zookeeper-servers: [{host: zk}]\n" + main + "\n", "secure.yaml": secure + "\n"}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Load(filepath.Join(dir, "nodepool.yaml"), opts)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ".yaml:") {
			t.Errorf("%s\n%v\nwant %s", text, err, want)
		}
	}
}

// Mistakes: a hook that is served without a secret, or with one that can be guessed; a
// secret for nobody; one wrong sink or hook that stops a daemon, or goes on unsigned.
func TestSinksAndHooksAreLeftOutAlone(t *testing.T) {
	load := func(secure string, strict bool) (*Config, error) {
		dir := t.TempDir()
		main := "zookeeper-servers: [{host: zk}]\ndiskimages: [{name: debian, formats: [raw]}]\n" +
			"hooks: [{name: a, all: true}, {name: b, all: true}]\nevents: {sinks: [{name: s, file: /s}, {name: t, file: /t}]}\n"
		for name, content := range map[string]string{"nodepool.yaml": main, "secure.yaml": secure + "\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return Load(filepath.Join(dir, "nodepool.yaml"), Options{Env: alone(), Strict: strict, SecurePath: filepath.Join(dir, "secure.yaml")})
	}
	const a, b = "{name: a, secret: 0123456789abcdef}", "{name: b, secret: fedcba9876543210}"
	cfg, err := load("hooks: ["+a+", "+b+"]", true)
	if err != nil || cfg.Hooks[1].Secret != "fedcba9876543210" || !slices.Contains(cfg.Secrets(), "fedcba9876543210") {
		t.Fatalf("%v, %v", cfg, err)
	}
	if text := fmt.Sprintf("%v %+v %#v", cfg.Hooks, cfg.Hooks, cfg.Hooks); strings.Contains(text, "fedcba") {
		t.Errorf("a secret shows: %s", text)
	}
	for secure, want := range map[string]string{
		"hooks: [" + a + "]":                                                               `no secret for the hook "b"`,
		"hooks: [" + a + ", {name: b, secret: short}]":                                     "at least 16",
		"hooks: [" + a + ", " + b + ", {name: c, secret: 0123456789abcdef}]":               `no hook "c"`,
		"hooks: [" + a + ", " + b + "]\nevents: {sinks: [{name: t, key: short}]}":          "at least 16",
		"hooks: [" + a + ", {name: b, secret: sealed:v1:none}]":                            "cannot be read",
		"hooks: [" + a + ", " + b + "]\nevents: {sinks: [{name: t, key: sealed:v1:none}]}": "cannot be read",
	} {
		if _, err := load(secure, true); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "secure.yaml:") && !strings.Contains(err.Error(), "no secret") {
			t.Errorf("%s\n%v\nwant %s", secure, err, want)
		}
		cfg, err := load(secure, false)
		if err != nil {
			t.Errorf("a daemon does not start: %v", err)
			continue
		}
		left := ""
		for _, f := range cfg.Frozen {
			left += f.Kind + " " + f.Name + " "
		}
		sinks := strings.Contains(secure, "events")
		whole := strings.Contains(secure, "name: c")
		if sinks != (left == "event sink t ") || sinks != (len(cfg.Events.Sinks) == 1) || whole && left != "" || cfg.Hooks[0].Secret == "" ||
			!sinks && !whole && len(cfg.Hooks) == 2 && cfg.Hooks[1].Secret != "" {
			t.Errorf("%s\nleft out: %s; sinks %v, hooks %v", secure, left, cfg.Events.Sinks, cfg.Hooks)
		}
	}
}
