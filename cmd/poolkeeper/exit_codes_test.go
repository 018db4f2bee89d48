package main

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// docs/exit-codes.md lists the codes that there are: each one is tried, and none that is tried is
// missing there. That of `ssh` is the command's on the node; a guest is needed for it.
func TestExitCodes(t *testing.T) {
	u := newTool(t, "labels: [{name: small}]\n")
	broken, nobody := u.file+".broken", u.file+".nobody"
	for file, text := range map[string]string{
		broken: "labels: {name: small}\n",
		nobody: "zookeeper-servers: [{host: 127.0.0.1, port: 1}]\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	u.znode("/nodepool/requests/200-0000000001", `{"state": "requested", "state_time": 1, "node_types": ["small"], "requestor": "x"}`)
	tried := map[string]bool{}
	for _, c := range []struct {
		code string
		args []string
	}{
		{"0", []string{"version"}},
		{"0", []string{"--help"}},
		{"0", []string{"-c", u.file, "list"}},
		{"0", []string{"-c", u.file, "config-show", "labels"}},
		{"1", nil},
		{"1", []string{"-c", u.file, "node-delete", "0000000009"}},
		{"1", []string{"-c", u.file, "config-show", "lables"}},
		{"1", []string{"-c", broken, "config-validate"}},
		{"1", []string{"-c", broken, "config-show"}},
		{"1", []string{"-c", nobody, "--zookeeper-wait", "1s", "list"}},
		{"2", []string{"lits"}},
		{"2", []string{"list", "--no-such-flag"}},
		{"2", []string{"-c", u.file, "hold"}},
		{"3", []string{"-c", u.file, "status"}}, // a request waits, and nobody serves it
		{"78", []string{"-c", broken, "builder"}},
		{"78", []string{"-c", broken, "launcher"}},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), c.args, &stdout, &stderr)
		tried[c.code] = true
		if got := strconv.Itoa(code); got != c.code {
			t.Errorf("%q: exit code %s, want %s: %s", c.args, got, c.code, &stderr)
		}
		if (c.code == "1" || c.code == "2" || c.code == "78") && len(c.args) > 0 && stderr.Len() == 0 {
			t.Errorf("%q says nothing on stderr", c.args)
		}
	}
	page, err := os.ReadFile("../../docs/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllSubmatch(page, -1) {
		listed[string(m[1])] = true
	}
	if !maps.Equal(listed, tried) {
		t.Errorf("docs/exit-codes.md lists %v, tried are %v", slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(tried)))
	}
}
