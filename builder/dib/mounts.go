//go:build linux

package dib

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
)

// mountsOf lists the mounts that belong to a folder: mounted in it, or from a
// loop device over one of its files. What was mounted last comes first.
func mountsOf(dir string, loops []string) ([]string, error) {
	all, err := mountinfo.GetMounts(nil) // in the order of mounting
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	var points []string
	for _, m := range slices.Backward(all) {
		if below(m.Mountpoint, dir) || slices.Contains(loops, m.Source) {
			points = append(points, m.Mountpoint)
		}
	}
	slices.SortStableFunc(points, func(a, b string) int {
		return cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/"))
	})
	return points, nil
}

// loopsOf lists the loop devices over files in a folder.
func loopsOf(dir string) ([]string, error) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, fmt.Errorf("list loop devices: %w", err)
	}
	var devices []string
	for _, file := range files {
		backing, err := os.ReadFile(file)
		if err == nil && below(strings.TrimSuffix(string(backing), "\n"), dir) {
			devices = append(devices, "/dev/"+filepath.Base(filepath.Dir(filepath.Dir(file))))
		}
	}
	return devices, nil
}

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
