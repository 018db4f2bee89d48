package dib

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// toolTime is how long one of the small tools below may take.
const toolTime = 10 * time.Second

// privileged runs a system tool as root, through sudo when we are not: where
// diskimage-builder works, sudo works without a password. Cleaning up goes on
// when ctx has ended.
func privileged(ctx context.Context, argv ...string) error {
	if os.Geteuid() != 0 {
		argv = append([]string{"sudo", "-n"}, argv...)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
