package local

import (
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/procfs"
)

// virtualizes reports whether an x86 processor has what KVM needs to run guests
// natively, by the flags of the first one in cpuinfo of a folder such as /proc. Without
// it /dev/kvm may still be there: of a KVM that is made for special guests, and runs
// others wrongly or at a hundredth of the speed.
func virtualizes(proc string) (bool, error) {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return false, fmt.Errorf("read flags of the processor: %w", err)
	}
	processors, err := fs.CPUInfo()
	if err != nil {
		return false, fmt.Errorf("read flags of the processor: %w", err)
	}
	if len(processors) == 0 || processors[0].Flags == nil { // not even none
		return false, errors.New("read flags of the processor: there are none")
	}
	flags := processors[0].Flags
	return slices.Contains(flags, "vmx") || slices.Contains(flags, "svm"), nil
}
