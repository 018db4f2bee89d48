package fake

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// The operations that a Hook sees and that fail-every may name.
const (
	OpUpload      = "upload"
	OpDeleteImage = "delete-image"
	OpCreate      = "create"
	OpWait        = "wait"
	OpDeleteNode  = "delete-node"
	OpList        = "list"   // of images or nodes
	OpLimits      = "limits" // of the account
)

var ops = []string{OpUpload, OpDeleteImage, OpCreate, OpWait, OpDeleteNode, OpList, OpLimits}

func knownOp(op string) bool { return slices.Contains(ops, op) }

// Call is one moment of one operation.
type Call struct {
	Op string
	// ID is the node's or upload's record id for create and upload, the
	// external id for the others, "" for lists and limits.
	ID string
	// Done tells the moment after the cloud did it from the one before. An
	// error then is a lost answer: the thing was done, the caller does not know.
	Done bool
}

// Hook decides over a Call: an error becomes the operation's, and a hook that
// blocks delays it. It may be called from many goroutines at once.
type Hook func(ctx context.Context, call Call) error

// faults injects what goes wrong.
type faults struct {
	mu    sync.Mutex
	hook  Hook
	every map[string]int
	calls map[string]int
}

func (f *faults) set(h Hook) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = h
}

// before runs at the beginning of every operation.
func (f *faults) before(ctx context.Context, op, id string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", op, context.Cause(ctx))
	}
	f.mu.Lock()
	hook, every := f.hook, f.every[op]
	f.calls[op]++
	failing := every > 0 && f.calls[op]%every == 0
	f.mu.Unlock()
	if failing {
		return fmt.Errorf("%s: %w: injected by fail-every", op, providers.ErrTransient)
	}
	return ask(ctx, hook, Call{Op: op, ID: id})
}

// after runs when the cloud has done its part.
func (f *faults) after(ctx context.Context, op, id string) error {
	f.mu.Lock()
	hook := f.hook
	f.mu.Unlock()
	return ask(ctx, hook, Call{Op: op, ID: id, Done: true})
}

func ask(ctx context.Context, hook Hook, call Call) error {
	if hook == nil {
		return nil
	}
	if err := hook(ctx, call); err != nil {
		return fmt.Errorf("%s: %w", call.Op, err)
	}
	return nil
}

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	return clock.Sleep(ctx, d)
}
