package zktest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// kazooHead is put before every script: zk is a connected KazooClient, and say
// prints a line at once. sys.stdin gives the lines that the test sends.
const kazooHead = `
import sys, logging
logging.disable(logging.CRITICAL)
from kazoo.client import KazooClient
from kazoo.exceptions import *
zk = KazooClient(hosts=sys.argv[1], timeout=float(sys.argv[2]))
zk.start(timeout=20)
def say(*words):
    print(*words, flush=True)
def hear():
    return sys.stdin.readline().strip()
`

// Kazoo is a script that runs against a server with Python's client, kazoo, of
// Debian's python3-kazoo.
type Kazoo struct {
	tb  testing.TB
	in  io.Writer
	out *bufio.Scanner
	// PID is the number of its process.
	PID int
}

// StartKazoo starts a script with zk connected to addr and root as chroot. It is
// stopped with the test.
func StartKazoo(tb testing.TB, addr, root, script string) *Kazoo {
	tb.Helper()
	ours(tb)
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	tail := "\nzk.stop()\n"
	cmd := exec.CommandContext(ctx, "/usr/bin/python3", "-c", kazooHead+script+tail, addr+root, "5")
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatalf("start kazoo: %v", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatalf("start kazoo: %v", err)
	}
	stderr := &strings.Builder{}
	cmd.Stderr = stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		tb.Fatalf("start kazoo: %v", err)
	}
	tb.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed, unless it had ended
		if tb.Failed() && stderr.Len() > 0 {
			tb.Logf("kazoo: %s", stderr)
		}
	})
	return &Kazoo{tb: tb, in: in, out: bufio.NewScanner(out), PID: cmd.Process.Pid}
}

// Hear returns the next line that the script prints, or fails the test if it has ended.
func (k *Kazoo) Hear() string {
	k.tb.Helper()
	if !k.out.Scan() {
		k.tb.Fatalf("kazoo ended: %v", k.out.Err())
	}
	return k.out.Text()
}

// Expect fails the test unless the script prints line next.
func (k *Kazoo) Expect(line string) {
	k.tb.Helper()
	if got := k.Hear(); got != line {
		k.tb.Fatalf("kazoo said %q, want %q", got, line)
	}
}

// Say sends a line to the script.
func (k *Kazoo) Say(line string) {
	k.tb.Helper()
	if _, err := fmt.Fprintln(k.in, line); err != nil {
		k.tb.Fatalf("speak to kazoo: %v", err)
	}
}
