package local

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Why a run of the probe was ended before it came to its end.
var (
	errBeaten = errors.New("it was slower")
	errLate   = errors.New("it was not done in time")
)

// lap is one accelerator's run of the probe.
type lap struct {
	accel string
	took  time.Duration
	err   error  // nil when it came to the end
	said  string // QEMU's own words
}

// race runs the probe with KVM and emulated at the same time: the first at the end
// is the faster one, however busy the host is. It is not sure when neither came
// there in time.
func (a *accelerator) race(ctx context.Context, binary string) (c Choice, sure bool, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, a.limit, errLate)
	defer cancel()
	running, stop := context.WithCancelCause(limited)
	defer stop(nil)
	ended := make(chan lap, 2)
	for _, accel := range []string{kvm, emulation} {
		go func() {
			start := time.Now()
			said, err := bootProbe(running, binary, accel, a.dir)
			ended <- lap{accel, time.Since(start), err, said}
		}()
	}
	first := <-ended
	if first.err == nil || first.accel == kvm { // it has won, or only emulation is left
		stop(errBeaten)
	}
	second := <-ended
	if ctx.Err() != nil {
		return Choice{}, false, context.Cause(ctx)
	}
	if first.accel == emulation {
		first, second = second, first
	}
	c, sure = judge(first, second)
	return c, sure, nil
}

// judge makes a choice of the two laps.
func judge(native, emulated lap) (c Choice, sure bool) {
	killed := errors.Is(native.err, errLate) || errors.Is(native.err, errBeaten)
	switch {
	case native.err == nil && (emulated.err != nil || native.took <= emulated.took):
		return Choice{kvm, fmt.Sprintf("KVM %s; emulation %s", native, emulated)}, true
	case native.err == nil || emulated.err == nil:
		return Choice{emulation, fmt.Sprintf("emulation %s; KVM %s", emulated, native)}, true
	case !killed:
		return Choice{emulation, "KVM " + native.String()}, true
	}
	return Choice{emulation, fmt.Sprintf("neither ran the probe in %s; KVM %s; emulation %s",
		native.took.Round(time.Millisecond), native, emulated)}, false
}

// String says how the lap went.
func (l lap) String() string {
	text := fmt.Sprintf("ran the probe in %.2f s", l.took.Seconds())
	if l.err != nil {
		text = "did not run the probe: " + l.err.Error()
	}
	if l.err != nil && l.said != "" {
		text += " (" + l.said + ")"
	}
	return text
}
