package devenv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// childDir makes the test binary a process that starts an environment's
// ZooKeeper, says so and waits to be killed.
const childDir = "DEVENV_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(child(dir))
	}
	goleak.VerifyTestMain(m)
}

func child(dir string) int {
	e, err := Open(context.Background(), dir, 0)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	z, err := e.StartZooKeeper(context.Background())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("pid", z.cmd.Process.Pid)
	<-z.Exited()
	return 0
}

func TestZooKeeperServesAndKeepsItsData(t *testing.T) {
	e := open(t, t.TempDir(), 0)
	for round := range 2 {
		z, err := e.StartZooKeeper(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		client, err := recipe.Dial(recipe.Config{Servers: e.Config().ZooKeeper.Servers})
		if err != nil {
			t.Fatal(err)
		}
		s, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Create(t.Context(), "/round", nil, recipe.Persistent)
		if want := round > 0; errors.Is(err, recipe.ErrNodeExists) != want {
			t.Errorf("round %d: create: %v", round, err)
		}
		client.Close()
		if err := z.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := portIsFree(t.Context(), e.Port); err != nil {
			t.Errorf("after Stop: %v", err)
		}
	}
}

func TestZooKeeperThatEndsSaysSo(t *testing.T) {
	e := open(t, t.TempDir(), 0)
	z, err := e.StartZooKeeper(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := z.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-z.Exited()
	if err := z.Err(); !strings.Contains(err.Error(), "signal: killed") || !strings.Contains(err.Error(), z.log) {
		t.Errorf("error of a server that was killed: %v", err)
	}
	if err := z.Stop(); err != nil {
		t.Errorf("stop what has ended: %v", err)
	}
}

func TestZooKeeperThatCannotStartSaysWhy(t *testing.T) {
	e := open(t, t.TempDir(), 0)
	if err := os.WriteFile(e.file("zookeeper/data"), []byte("a file where a folder must be"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := e.StartZooKeeper(t.Context()); err == nil || !strings.Contains(err.Error(), "its log is") {
		t.Errorf("start: %v", err)
	}
}

// However the process ends, the server ends with it.
func TestZooKeeperDiesWithItsParent(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscanf(line, "pid %d", &pid); err != nil {
		t.Fatalf("the child says %q: %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	zktest.Eventually(t, func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }, "the server is gone")
}
