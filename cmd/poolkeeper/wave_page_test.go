package main

import (
	"os"
	"strings"
	"testing"
)

// Mistake: a line of docs/waves.md that nothing runs as it stands.
func TestLinesOfTheWavesPageAreRun(t *testing.T) {
	page, err := os.ReadFile("../../docs/waves.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/script/wave.txtar")
	if err != nil {
		t.Fatal(err)
	}
	run := map[string]bool{}
	for line := range strings.Lines(string(script)) {
		run[strings.TrimSpace(line)] = true
	}
	lines := 0
	for line := range strings.Lines(string(page)) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ "); ok {
			lines++
			if !run["exec "+command] {
				t.Errorf("testdata/script/wave.txtar does not run %q", command)
			}
		}
	}
	if lines < 10 {
		t.Errorf("the page shows %d lines", lines)
	}
}
