package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/hook"
	"poolkeeper/zkmodel/source"
)

// free is an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}

// Mistakes: a page whose configurations or lines do not work as they stand there; a launcher
// that takes nothing; a delivery that makes two waves when both daemons are told of it; a
// secret in the tree; a source of the page whose change makes no wave.
func TestHooksPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	var yaml, lines []string
	for i, block := range strings.Split(string(page), "```") {
		switch lang, text, _ := strings.Cut(block, "\n"); {
		case i%2 == 1 && lang == "yaml":
			yaml = append(yaml, text)
		case i%2 == 1 && lang == "console":
			for line := range strings.Lines(text) {
				lines = append(lines, strings.TrimSpace(strings.TrimPrefix(line, "$ ")))
			}
		}
	}
	if len(yaml) != 3 || len(lines) != 4 {
		t.Fatalf("the page shows %d configurations and %d lines, which this test does not expect", len(yaml), len(lines))
	}
	dir := t.TempDir()
	repository := filepath.Join(dir, "elements")
	commit := func(what string) {
		t.Helper()
		script := "git init -q -b main " + repository + " && cd " + repository + " && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m " + what
		if said, err := exec.CommandContext(t.Context(), "/bin/sh", "-ec", script).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v", said, err)
		}
	}
	commit("first")
	sources := strings.NewReplacer("https://git.example.org/elements", repository, "every: 300", "every: 1").Replace(yaml[2])
	file, session := eventSite(t, fmt.Sprintf("images-dir: %s\nbuild-log-dir: %s\n%s%s", dir, dir, yaml[0], sources))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	secure := filepath.Join(dir, "secure.yaml")
	for name, text := range map[string]string{
		file: strings.Replace(string(text), "{name: debian-12}", "{name: debian-12, formats: [raw]}", 1), secure: yaml[1],
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := zkmodel.NewStore(session, nil).PauseImage(t.Context(), "debian-12"); err != nil { // no build begins
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	addresses := map[string]string{"builder": free(t), "launcher": free(t)}
	for daemon, address := range addresses {
		group.Go(func() {
			var out, complaints logged
			if code := run(ctx, []string{"-c", file, "-s", secure, daemon, "--web", address}, &out, &complaints); code != exitDone {
				t.Errorf("%s: exit code %d: %s", daemon, code, complaints.String())
			}
		})
		zktest.Eventually(t, func() bool {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/ready", nil)
			if err != nil {
				t.Fatal(err)
			}
			a, err := http.DefaultClient.Do(r)
			if err == nil {
				_ = a.Body.Close()
			}
			return err == nil && a.StatusCode == http.StatusOK
		}, "the %s is ready", daemon)
	}
	defer http.DefaultClient.CloseIdleConnections()
	for i, daemon := range []string{"launcher", "builder"} {
		script := strings.ReplaceAll(strings.Join(lines[:3], "\n"), "127.0.0.1:8006", addresses[daemon])
		said, err := exec.CommandContext(ctx, "/bin/sh", "-c", script).CombinedOutput()
		if want := []string{"it is taken", "it is known already"}[i]; err != nil || !strings.Contains(string(said), want) {
			t.Fatalf("%s: %s, want %s: %v", daemon, said, want, err)
		}
	}
	list := func() string {
		var out, complaints bytes.Buffer
		args := strings.Replace(strings.TrimPrefix(lines[3], "poolkeeper "), "nodepool.yaml", file, 1)
		if code := run(ctx, wordsOfLine(t, args), &out, &complaints); code != exitDone {
			t.Fatalf("%s: exit code %d: %s", lines[3], code, &complaints)
		}
		return out.String()
	}
	known := func() string {
		r, err := source.NewStore(session).Record(ctx, "elements-git")
		if err != nil {
			t.Fatal(err)
		}
		return r.Digest + r.Failing
	}
	zktest.Eventually(t, func() bool { return known() != "" }, "the source was looked at")
	before := known()
	commit("second")
	zktest.Eventually(t, func() bool { return known() != before && strings.Count(list(), "\n| elements-git-") == 1 }, "its change makes a wave: %s", known())
	zktest.Eventually(t, func() bool {
		return strings.Count(list(), "\n| elements-") == 2 && strings.Contains(list(), "the elements have changed: push to main of acme/elements (53ce4e8)")
	}, "the wave is made: %s", list())
	if o, known, err := hook.NewStore(session).Outcome(ctx, "elements", "by-hand-1"); err != nil || !known || o.Wave == "" {
		t.Errorf("%+v %t %v", o, known, err)
	}
}
