// Package bench is what benchmarks have in common whose daemons are processes of their own.
package bench

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

// Spawn starts this test program again, as command with arg in JSON: what it takes can be told from
// what others take. It ends when its input does; stop closes that, waits, and fails b if it ended ill.
func Spawn(b *testing.B, command string, arg any) (cmd *exec.Cmd, stop func()) {
	b.Helper()
	text, err := json.Marshal(arg)
	if err != nil {
		b.Fatal(err)
	}
	cmd = exec.Command(os.Args[0], command, string(text)) //nolint:noctx // ended by its input
	input, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return cmd, func() {
		_ = input.Close()
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	}
}

// Resident is what a process holds in memory, in MiB.
func Resident(b *testing.B, pid int) float64 {
	b.Helper()
	p, err := procfs.NewProc(pid)
	if err != nil {
		b.Fatal(err)
	}
	status, err := p.NewStatus()
	if err != nil || status.VmRSS == 0 {
		b.Fatalf("no VmRSS: %v", err)
	}
	return float64(status.VmRSS) / (1 << 20)
}

// Percentile is the time below which so much of the times is, which it sorts; p is from 0 to 1.
func Percentile(times []time.Duration, p float64) time.Duration {
	slices.Sort(times)
	return times[min(int(float64(len(times))*p), len(times)-1)]
}

// Processor returns for how many seconds a process has had a processor.
func Processor(b *testing.B, pid int) float64 {
	b.Helper()
	p, err := procfs.NewProc(pid)
	if err != nil {
		b.Fatal(err)
	}
	stat, err := p.Stat()
	if err != nil {
		b.Fatal(err)
	}
	return stat.CPUTime()
}
