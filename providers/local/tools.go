package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"poolkeeper/providers"
)

// tools are the programs that make and run guests.
type tools struct {
	qemu, qemuImg, genisoimage, setsid string
}

func newTools(o Options) tools {
	return tools{
		qemu:        cmp.Or(o.QEMU, "qemu-system-x86_64"),
		qemuImg:     cmp.Or(o.QEMUImg, "qemu-img"),
		genisoimage: cmp.Or(o.Genisoimage, "genisoimage"),
		setsid:      "setsid",
	}
}

// command prepares a program. It gets nothing of our environment, which may
// hold secrets, but where programs are.
func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.WaitDelay = time.Second
	return cmd
}

// run runs a program to its end. Its words become the error's. It inherits the
// lock under which it works: if we die, it keeps others away until it has ended.
func run(ctx context.Context, held *os.File, dir, name string, args ...string) error {
	cmd := command(ctx, dir, name, args...)
	cmd.ExtraFiles = []*os.File{held}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("run %s: %w", name, context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w: %s is not installed", providers.ErrInvalid, name)
	case strings.Contains(output.String(), "No space left on device"):
		return fmt.Errorf("%w: run %s: the disk is full", providers.ErrQuota, name)
	}
	return fmt.Errorf("%w: run %s: %w: %s", providers.ErrTransient, name, err, lastLines(output.Bytes()))
}

// lastLines is the end of what a program said, on one line.
func lastLines(output []byte) string {
	const most = 500
	text := strings.TrimSpace(string(output))
	if len(text) > most {
		text = "…" + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return strings.ReplaceAll(text, "\n", "; ")
}

// decisive is the line of what a program said that tells why it failed: the first
// that says so itself, else the end. QEMU writes registers behind it.
func decisive(output []byte) string {
	for line := range strings.Lines(string(output)) {
		lower := strings.ToLower(line)
		for _, word := range []string{"error", "failed", "could not", "fatal", "panic"} {
			if strings.Contains(lower, word) {
				return lastLines([]byte(line))
			}
		}
	}
	return lastLines(output)
}
