package zktest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// orphanEnv makes the test binary a process that starts a server and is killed.
const orphanEnv = "ZKTEST_ORPHAN"

func TestMain(m *testing.M) {
	if os.Getenv(orphanEnv) == "" {
		m.Run()
		return
	}
	s, err := ForExamples()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.process.pid, s.dir)
	select {}
}

// TestNothingSurvives kills a test process: its server and its folder go with it.
func TestNothingSurvives(t *testing.T) {
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), orphanEnv+"=1")
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
	pid, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
	if _, err := os.Stat("/proc/" + pid); err != nil || dir == "" {
		t.Fatalf("no server: %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	gone := func(path string) func() bool {
		return func() bool {
			_, err := os.Stat(path)
			return os.IsNotExist(err)
		}
	}
	Eventually(t, gone("/proc/"+pid), "the server ends")
	Eventually(t, gone(dir), "its folder is removed")
}
