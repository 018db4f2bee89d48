package diblog

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Mistake: a line that tells of a failure and is passed over, as it has none of the words that
// are looked for first. The logs are real ones.
func TestEveryLineThatTellsIsLookedAt(t *testing.T) {
	logs, err := filepath.Glob("../../builder/buildlog/testdata/failures/*.log")
	if err != nil || len(logs) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	told := 0
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			line = bytes.TrimRight(line, "\n")
			if weigh(Unstamped(string(line))) == 0 {
				continue
			}
			told++
			if !mayTell(line) {
				t.Errorf("passed over: %s", line)
			}
		}
	}
	if told < 50 {
		t.Errorf("%d lines tell of a failure", told)
	}
}

func TestRead(t *testing.T) {
	for text, want := range map[string]Line{
		"": {},
		"2026-11-22 03:57:42.666 | diskimage-builder version 3.13.0\n": {},
		"2026-11-22 03:57:42.6| no stamp":                              {},
		"2026-11-22 03:57:42.666 | dib-run-parts Running /tmp/dib_build.x/hooks/root.d/10-files-only": {
			Phase: "root.d", Script: "10-files-only",
		},
		"dib-run-parts Fri Nov 20 09:42:01 UTC 2026 Running /tmp/in_target.d/pre-install.d/00-up": {Phase: "pre-install.d", Script: "00-up"},
		"dib-run-parts 10-files-only completed":                                                   {Completed: true},
		"++ mktemp -d error":                                                                      {},
		"+ /usr/lib/x:main:1  :   trap_cleanup":                                                   {Trap: true},
		"E: Unable to locate package no-such-package\r\n":                                         {Weight: 3, said: "E: Unable to locate package no-such-package"},
		"E: apt-get install failed":                                                               {Weight: 1, said: "E: apt-get install failed"},
		"DEBUG x [-] exec_sudo: mkfs: bad usage, too small exec_sudo /a/b.py:1":                   {Weight: 2, said: "mkfs: bad usage, too small", bonus: 1},
	} {
		if got := Read([]byte(text)); got != want {
			t.Errorf("%q:\n got %+v\nwant %+v", text, got, want)
		}
	}
}

func TestStamp(t *testing.T) {
	for text, want := range map[string]string{
		"2026-11-22 03:57:42.666 | dib-run-parts": "2026-11-22 03:57:42.666", "2026-11-22 03:57:42.6| no stamp": "", "": "",
	} {
		if got := Stamp([]byte(text)); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// The number of the line that says why is that of the log, and is of what the last script said.
func TestFinderCountsLines(t *testing.T) {
	var f Finder
	for _, line := range []string{
		"dib-run-parts Running /x/root.d/10-a", "E: first", "dib-run-parts 10-a completed", "all well",
		"dib-run-parts Running /x/install.d/20-b", "cp: cannot stat 'x'", "more", "+ trap_cleanup", "E: later",
	} {
		f.Add([]byte(line))
	}
	cause, at := f.Cause()
	if want := (Cause{"cp: cannot stat 'x'", "install.d/20-b"}); cause != want || at != 6 || !f.Over() {
		t.Errorf("cause %+v in line %d", cause, at)
	}
}

// BenchmarkFinder is how long the lines of a real log take; the unit is its bytes.
func BenchmarkFinder(b *testing.B) {
	text, err := os.ReadFile("../../builder/buildlog/testdata/failures/package.log")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var f Finder
		for line := range bytes.Lines(text) {
			f.Add(line)
		}
	}
}
