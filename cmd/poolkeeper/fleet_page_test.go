package main

import (
	"os"
	"strings"
	"testing"
)

// Each command of docs/fleet-configuration.md is run, as it stands there, by the script of
// the fleet: a page that shows another command, or a script that no longer runs one, fails here.
func TestFleetPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/fleet-configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/script/fleet.txtar")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(script), "\n")
	runs := map[string]bool{}
	for _, line := range lines {
		runs[strings.TrimPrefix(line, "exec ")] = true
		if rest, ok := strings.CutSuffix(line, " $1 >>$2.log 2>&1 </dev/null &"); ok {
			runs[rest+" builder"], runs[rest+" launcher"] = true, true // a and c of `start`
		}
	}
	commands := 0
	for line := range strings.Lines(string(page)) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if !ok {
			command, ok = strings.CutPrefix(strings.TrimSpace(line), "# poolkeeper ")
			command = "poolkeeper " + command
		}
		if !ok {
			continue
		}
		commands++
		if !runs[command] {
			t.Errorf("no script runs %q", command)
		}
	}
	if commands < 10 {
		t.Errorf("%d commands only", commands)
	}
}
