package dib

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mount is one line of mountinfo, as far as we care.
type mount struct {
	point  string
	source string
}

// readMounts lists what is mounted in our namespace, in the order of mounting.
func readMounts() ([]mount, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	var list []mount
	for line := range strings.Lines(string(data)) {
		// 36 35 98:0 /root /mnt/point rw,noatime master:1 - ext3 /dev/source rw
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 2 {
			continue
		}
		list = append(list, mount{point: unescape(left[4]), source: unescape(right[1])})
	}
	return list, nil
}

// unescape undoes the octal escapes of mountinfo: \040 is a blank.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if code, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// mountsOf lists the mounts that belong to a folder: mounted in it, or from a
// loop device over one of its files. What was mounted last comes first.
func mountsOf(dir string, loops []string) ([]string, error) {
	all, err := readMounts()
	if err != nil {
		return nil, err
	}
	var points []string
	for _, m := range slices.Backward(all) {
		if below(m.point, dir) || slices.Contains(loops, m.source) {
			points = append(points, m.point)
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
