package e2e

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"poolkeeper/test/journey"
	"poolkeeper/test/zktest"
)

// person gets a node without a Zuul: asks for one and holds it, looks at it, and
// deletes it. The request goes with it.
func person(t *testing.T, j *journey.Journey) {
	t.Helper()
	run := func(want int, args ...string) string {
		t.Helper()
		line, out, err := j.CLI(t.Context(), args...)
		code := 0
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code = exit.ExitCode()
		}
		if code != want || err != nil && code == 0 {
			t.Fatalf("%s: %v, want exit code %d\n%s", line, err, want, out)
		}
		return out
	}
	id, _, _ := strings.Cut(run(0, "request", j.Label, "--hold", "--for", "1h"), " ")
	if list := run(0, "list"); !strings.Contains(list, id+" ") || !strings.Contains(list, " hold ") {
		t.Errorf("node %q is not held:\n%s", id, list)
	}
	key := j.Dir + "/id_ed25519"
	if out := run(0, "ssh", "-i", key, id, "uname", "-n"); strings.TrimSpace(out) != "np"+id {
		t.Errorf("node %s calls itself %q", id, out)
	}
	run(7, "ssh", id, "-i", key, "-q", "sh -c 'exit 7'") // options behind the node, and the exit code
	run(0, "node-delete", id)
	zktest.Eventually(t, func() bool { return !strings.Contains(run(0, "list"), id) }, "node %s deleted", id)
	if list := run(0, "request-list"); strings.Contains(list, "200-") {
		t.Errorf("a request is left:\n%s", list)
	}
}
