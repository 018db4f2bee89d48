package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/journey"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
)

// slots: two nodes are slots on one guest, which launchers of their own ask the environment's for.
// These launchers are killed while jobs run; who comes next gives the guest back.
func slots(t *testing.T, binary string, j *journey.Journey) {
	t.Helper()
	ctx := t.Context()
	z := j.Config().ZooKeeper
	host, port, err := net.SplitHostPort(z.Servers[0])
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(j.Dir, "slots.yaml")
	text := fmt.Sprintf(`zookeeper-servers: [{host: %q, port: %s, chroot: %q}]
labels: [{name: %s}, {name: slot}]
providers:
  - name: slots
    driver: metastatic
    pools: [{name: main, labels: [{name: slot, backing-label: %s, max-parallel-jobs: 2, grace-time: 0, host-key-checking: true}]}]
`, host, port, z.Chroot, j.Label, j.Label)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	requestor, err := zuul.Dial(ctx, z.Servers, z.Chroot, "slots-zuul")
	if err != nil {
		t.Fatal(err)
	}
	defer requestor.Close()
	kill := serveSlots(t, binary, file, 2)
	waiting, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	var jobs []*zuul.Node
	on := map[string]bool{}
	for _, id := range []string{submit(t, requestor), submit(t, requestor)} {
		out, err := requestor.Wait(waiting, id)
		if err != nil {
			t.Fatal(err)
		}
		nodes, err := requestor.Accept(ctx, out)
		if err == nil {
			err = requestor.Use(nodes...)
		}
		if err != nil {
			t.Fatalf("%+v: %v", out, err)
		}
		jobs = append(jobs, nodes...)
		on[fmt.Sprint(nodes[0].Object("driver_data")["backing_node"])] = true
	}
	if len(on) != 1 {
		t.Errorf("the two are on the nodes %v", on)
	}
	kill()
	for _, job := range jobs {
		line, out, err := j.CLI(ctx, "ssh", "-i", j.Dir+"/id_ed25519", job.ID, "uname", "-n")
		if err != nil || !on[strings.TrimPrefix(strings.TrimSpace(out), "np")] {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
	defer serveSlots(t, binary, file, 1)()
	if err := requestor.Return(jobs...); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool {
		_, out, err := j.CLI(ctx, "list")
		return err == nil && !strings.Contains(out, "slots") && !strings.Contains(out, j.Label)
	}, "no node left, the guest neither")
}

func submit(t *testing.T, requestor *zuul.Client) string {
	t.Helper()
	id, err := requestor.Submit(zuul.Wish{Labels: []string{"slot"}})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// serveSlots starts launchers and waits until they serve; what it returns kills them.
func serveSlots(t *testing.T, binary, file string, count int) (kill func()) {
	t.Helper()
	var all []*exec.Cmd
	var logs []string
	kill = func() {
		for _, cmd := range all {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		}
		all = nil
	}
	t.Cleanup(func() { kill() })
	for range count {
		cmd := exec.Command(binary, "-c", file, "launcher", "--no-webapp") //nolint:noctx // it is killed
		log, err := os.CreateTemp(filepath.Dir(file), "slots-launcher-*.log")
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
				t.Logf("%s:\n%s", log.Name(), text)
			}
			_ = log.Close()
		})
		all = append(all, cmd)
		logs = append(logs, log.Name())
	}
	for _, log := range logs {
		zktest.Eventually(t, func() bool {
			text, err := os.ReadFile(log)
			return err == nil && strings.Contains(string(text), "Serving requests")
		}, "the launcher of %s serves", log)
	}
	return kill
}
