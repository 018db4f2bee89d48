package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/test/journey"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

func TestProgressTellsOfEachStep(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out)
	cause := errors.New("no luck")
	if err := p.step(t.Context(), "try", func(context.Context) error { return cause }); !errors.Is(err, cause) {
		t.Errorf("a step that fails: %v", err)
	}
	if err := p.step(t.Context(), "try again", func(context.Context) error { return nil }); err != nil {
		t.Errorf("a step that succeeds: %v", err)
	}
	if err := p.step(t.Context(), "", func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{"... try", "FAILED try", "... try again", "ok try again"} {
		if i >= len(lines) || !strings.HasPrefix(strings.Join(strings.Fields(lines[i]), " "), want) {
			t.Fatalf("line %d: want %q in\n%s", i, want, out.String())
		}
	}
	if len(p.times) != 2 {
		t.Errorf("times of %d steps, want 2", len(p.times))
	}
}

// A program that does not run is told, the logs are named, and nothing is left.
func TestDemoOfABrokenProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	var out strings.Builder
	err := run(t.Context(), "/bin/false", false, &out)
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || errors.Is(err, errInterrupted) {
		t.Errorf("run: %v", err)
	}
	if !strings.Contains(out.String(), "The logs are in "+dir) || strings.Contains(out.String(), "has ended") {
		t.Errorf("told:\n%s", out.String())
	}
}

func TestDemoThatIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	program, up := filepath.Join(dir, "program"), filepath.Join(dir, "up")
	script := "#!/bin/sh\ntrap 'kill $!; exit 0' INT\nsleep 600 &\ntouch " + up + "\nwait\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	var out strings.Builder
	go func() { done <- run(ctx, program, false, &out) }()
	zktest.Eventually(t, func() bool { _, err := os.Stat(up); return err == nil }, "the program runs")
	cancel()
	if err := <-done; !errors.Is(err, errInterrupted) || strings.Contains(err.Error(), "\n") {
		t.Errorf("run: %v", err)
	}
	if left, err := filepath.Glob(dir + "/poolkeeper-demo-*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v; told:\n%s", left, err, out.String())
	}
}

func TestSummaryHasEverything(t *testing.T) {
	var out strings.Builder
	f := journey.Facts{
		Build: &zkmodel.Build{
			Image: "tiny", ID: "0000000001", Builder: "host.example.org",
			Files: map[string]zkmodel.ImageFile{"qcow2": {Size: 17 << 20, MD5: "MD5SUM", SHA256: "SHASUM"}},
		},
		Upload:  &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Provider: "local", ID: "0000000007"}, ExternalID: zkmodel.TextValue("EXTERNAL")},
		Request: "200-0000000003", Node: &zkmodel.Node{ID: "0000000004", ExternalID: zkmodel.TextValue("GUEST")},
		HostKey: "ssh-ed25519 AAAA", Answer: "Linux node", Address: "127.0.0.1:2222",
	}
	summarize(&out, f, &progress{times: []timing{{"build it", 1500e6}, {"boot it", 2e9}}})
	for _, want := range []string{
		"tiny", "0000000001 on host.example.org", "17 MiB", "MD5SUM", "SHASUM", "0000000007 to local", "EXTERNAL",
		"200-0000000003", "0000000004 at 127.0.0.1:2222", "GUEST", "ssh-ed25519 AAAA", "Linux node", "build it", "1.5 s", "3.5 s",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
