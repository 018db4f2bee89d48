package fake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"

	"poolkeeper/providers"
)

// Faults are what a cloud in a shared folder does wrong, for all processes that use it,
// until other faults are set.
type Faults struct {
	Refuse []string      // operations that fail
	Lose   []string      // operations that are done, and then have no answer
	Delay  time.Duration // before each operation
	Room   int           // so many machines fit, although Limits tells of more; 0 is no fault
}

// SetFaults has the cloud of a provider do wrong from now on. The zero value ends all
// faults.
func SetFaults(dir, provider string, f Faults) error {
	data, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("set faults of %s: %w", provider, err)
	}
	if err := renameio.WriteFile(faultsFile(dir, provider), data, 0o644, renameio.WithTempDir(dir)); err != nil {
		return fmt.Errorf("set faults of %s: %w", provider, err)
	}
	return nil
}

// PassOverFaults is for those who look on: what SetFaults says is not for them.
func (p *Provider) PassOverFaults() { p.onlooker = true }

func faultsFile(dir, provider string) string { return filepath.Join(dir, provider+".faults") }

// switches reads what was set; without a folder, or a file, nothing is wrong.
func (p *Provider) switches() (f Faults, err error) {
	if p.fake.Dir == "" || p.onlooker {
		return f, nil
	}
	data, err := os.ReadFile(faultsFile(p.fake.Dir, p.cfg.Name))
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("read faults: %w", err)
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("read faults: %w", err)
	}
	return f, nil
}

// before runs at the beginning of every operation.
func (p *Provider) before(ctx context.Context, op, id string) error {
	f, err := p.switches()
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	if err := pause(ctx, f.Delay); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	if slices.Contains(f.Refuse, op) {
		return fmt.Errorf("%s: %w: the cloud is made to refuse", op, providers.ErrTransient)
	}
	return p.faults.before(ctx, op, id)
}

// after runs when the cloud has done its part.
func (p *Provider) after(ctx context.Context, op, id string) error {
	f, err := p.switches()
	if err == nil && slices.Contains(f.Lose, op) {
		err = fmt.Errorf("%w: the cloud is made to lose its answer", providers.ErrTransient)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return p.faults.after(ctx, op, id)
}

// room is how many machines fit.
func (p *Provider) room() int {
	if f, err := p.switches(); err == nil && f.Room > 0 {
		return min(f.Room, p.fake.MaxInstances)
	}
	return p.fake.MaxInstances
}
