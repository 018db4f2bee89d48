package local

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxCPULine bounds a line of /proc/cpuinfo, in bytes: that of the flags has 2 KiB.
const maxCPULine = 64 << 10

// virtualizes reports whether an x86 processor has what KVM needs to run guests
// natively, by the flags in a file such as /proc/cpuinfo. Without it /dev/kvm may
// still be there: of a KVM that is made for special guests, and runs others
// wrongly or at a hundredth of the speed.
func virtualizes(cpuinfo string) (bool, error) {
	f, err := os.Open(cpuinfo)
	if err != nil {
		return false, err
	}
	defer f.Close() //nolint:errcheck // only read
	return hasVirtualization(f)
}

// hasVirtualization reads the flags of the first processor.
func hasVirtualization(cpuinfo io.Reader) (bool, error) {
	lines := bufio.NewScanner(cpuinfo)
	lines.Buffer(nil, maxCPULine)
	for lines.Scan() {
		key, flags, found := strings.Cut(lines.Text(), ":")
		if !found || strings.TrimSpace(key) != "flags" {
			continue
		}
		for flag := range strings.FieldsSeq(flags) {
			if flag == "vmx" || flag == "svm" {
				return true, nil
			}
		}
		return false, nil
	}
	if err := lines.Err(); err != nil {
		return false, fmt.Errorf("read flags of the processor: %w", err)
	}
	return false, errors.New("read flags of the processor: there are none")
}
