package openstack_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// official runs OpenStack's own client and decodes its answer into out, unless
// that is nil. It is slow (about 2 s), and judges us as nobody else can.
func official(tb testing.TB, cloud string, out any, args ...string) {
	tb.Helper()
	args = append([]string{"--os-cloud", cloud}, args...)
	if out != nil {
		args = append(args, "-f", "json")
	}
	cmd := exec.CommandContext(tb.Context(), "openstack", args...)
	cmd.Env = append(os.Environ(), "OS_CLIENT_CONFIG_FILE="+cloudsFile(), "PYTHONWARNINGS=ignore", "no_proxy=127.0.0.1")
	text, err := cmd.Output()
	if err != nil {
		failed := ""
		if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output gives it as it is
			failed = string(exit.Stderr)
		}
		tb.Fatalf("openstack %s: %v\n%s", strings.Join(args, " "), err, failed)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(text, out); err != nil {
		tb.Fatalf("openstack %s: %v in %s", strings.Join(args, " "), err, text)
	}
}

// thing is one line of one of the client's lists.
type thing struct {
	ID, Name, Status string
	Properties       map[string]any
}

// listings runs several of the client's lists in one run, which takes no longer
// than one of them.
func listings(tb testing.TB, cloud string, commands ...string) [][]thing {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), "openstack")
	cmd.Env = append(os.Environ(), "OS_CLOUD="+cloud, "OS_CLIENT_CONFIG_FILE="+cloudsFile(), "PYTHONWARNINGS=ignore", "no_proxy=127.0.0.1")
	cmd.Stdin = strings.NewReader(strings.Join(commands, " -f json\n") + " -f json\n")
	text, err := cmd.Output()
	answers := json.NewDecoder(bytes.NewReader(text))
	var all [][]thing
	for range commands {
		var list []thing
		if err == nil {
			err = answers.Decode(&list)
		}
		all = append(all, list)
	}
	if err != nil {
		tb.Fatalf("openstack, %s: %v in %s", strings.Join(commands, ", "), err, text)
	}
	return all
}

// What a project may have because of us, as the client lists it.
const (
	listServers     = "server list"
	listImages      = "image list --private"
	listFloatingIPs = "floating ip list"
	listPorts       = "port list --device-owner compute:nova"
)

// wantNothingLeft fails the test if the cloud has servers, images of ours,
// floating IPs, or ports of servers.
func wantNothingLeft(t *testing.T, cloud string) {
	t.Helper()
	kinds := []string{listServers, listImages, listFloatingIPs, listPorts}
	for i, left := range listings(t, cloud, kinds...) {
		if len(left) > 0 {
			t.Errorf("the cloud still has, by %s: %+v", kinds[i], left)
		}
	}
}
