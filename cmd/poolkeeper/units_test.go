package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// The units that we ship start the program as it wants to be started, and systemd,
// where there is one, finds nothing wrong with them.
func TestUnits(t *testing.T) {
	units, err := filepath.Glob("../../docs/systemd/*.service")
	if err != nil || len(units) != 2 {
		t.Fatalf("units: %q, %v", units, err)
	}
	dir := t.TempDir()
	for _, unit := range units {
		text, err := os.ReadFile(unit) //nolint:gosec // ours
		if err != nil {
			t.Fatal(err)
		}
		const binary = "/usr/local/bin/poolkeeper"
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(unit), "poolkeeper-"), ".service")
		_, line, _ := strings.Cut(string(text), "\nExecStart="+binary+" ")
		line, _, _ = strings.Cut(line, "\n")
		parser, err := kong.New(&cli{}, kong.Vars{"version": ""})
		if err != nil {
			t.Fatal(err)
		}
		command, err := parser.Parse(strings.Fields(line))
		if err != nil || command.Command() != name {
			t.Errorf("%s starts %q: %v", unit, line, err)
		}
		for _, need := range []string{"Type=notify", "ExecReload=/bin/kill -HUP $MAINPID", "WatchdogSec=", "Restart=on-failure"} {
			if !strings.Contains(string(text), "\n"+need) {
				t.Errorf("%s has no %s", unit, need)
			}
		}
		checked := strings.ReplaceAll(string(text), binary, "/bin/true") // it wants one that is installed
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(unit)), []byte(checked), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return // no systemd here
	}
	for _, unit := range units {
		cmd := exec.CommandContext(t.Context(), analyze, "verify", filepath.Join(dir, filepath.Base(unit))) //nolint:gosec // ours
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}
