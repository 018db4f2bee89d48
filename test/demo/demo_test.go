package main

import (
	"context"
	"errors"
	"io"
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
		HostKey: "ssh-ed25519 AAAA", Answer: "Linux node", Accelerator: "tcg, because there is no vmx", Address: "127.0.0.1:2222",
		Again: &zkmodel.Build{ID: "0000000012"}, Tried: "0000000014",
		Bad: &zkmodel.Build{ID: "0000000013"}, Rejected: "rejected by validation",
		Canary: &zkmodel.Build{ID: "0000000015"}, Retreated: "retreated by canary",
	}
	summarize(&out, f, &progress{times: []timing{{"build it", 1500e6}, {"boot it", 2e9}}})
	for _, want := range []string{
		"tiny", "0000000001 on host.example.org", "17 MiB", "MD5SUM", "SHASUM", "0000000007 to local", "EXTERNAL",
		"200-0000000003", "0000000004 at 127.0.0.1:2222", "GUEST", "ssh-ed25519 AAAA", "Linux node", "tcg, because there is no vmx", "build it", "1.5 s", "3.5 s",
		"0000000012 on node 0000000014", "0000000013: rejected by validation", "0000000015: retreated by canary",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// What Ctrl-C ends has not failed.
func TestStepThatIsInterrupted(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := p.step(ctx, "wait", func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
	if !errors.Is(err, context.Canceled) || strings.Contains(out.String(), "FAILED") || !strings.Contains(out.String(), "\nended  wait") {
		t.Errorf("%v:\n%s", err, out.String())
	}
	late, over := context.WithTimeoutCause(t.Context(), 0, errors.New("not done in time"))
	defer over()
	_ = p.step(late, "wait on", func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
	if !strings.Contains(out.String(), "\nFAILED wait on") {
		t.Errorf("a step that took too long:\n%s", out.String())
	}
}

// A step that runs says what it waits for; on a terminal, in its own line.
func TestStepShowsItsState(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		var out strings.Builder
		p := newProgress(&out)
		p.terminal, p.state = terminal, func() string { return "the disk is full" }
		p.line("...", "build", 2e9, "")
		p.line("ok", "build", 3e9, "\n")
		told := strings.Split(out.String(), "ok ")
		if !strings.Contains(told[0], "2.0 s  the disk is full") || strings.Contains(told[1], "full") || strings.Contains(told[0], "\r") != terminal {
			t.Errorf("terminal %t: %q", terminal, out.String())
		}
	}
}

// The folder for temporary files may be named from the current one; processes that are
// elsewhere are told of it, and found by it.
func TestDemoWithARelativeTMPDIR(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$@\" >"+dir+"/told\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "near"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("TMPDIR", "near")
	if err := run(t.Context(), program, false, io.Discard); err == nil {
		t.Error("a program that fails makes no demo")
	}
	told, err := os.ReadFile(filepath.Join(dir, "told"))
	if err != nil || !strings.HasPrefix(string(told), "dev --dir "+dir+"/near/poolkeeper-demo-") {
		t.Errorf("the program is told %q, %v", told, err)
	}
}
