package kubernetes

import (
	"os/exec"
	"regexp"
	"testing"
)

// The program must not link client-go or its types again: they added 5.5 MB, and 0.7 MB of memory to each daemon,
// also where no cluster is configured.
func TestProgramHasNoClientGo(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "poolkeeper/cmd/poolkeeper").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if linked := regexp.MustCompile(`(?m)^(sigs\.)?k8s\.io/\S+$`).FindAllString(string(out), -1); len(linked) > 0 {
		t.Errorf("the program has %d packages of Kubernetes: %v", len(linked), linked)
	}
}
