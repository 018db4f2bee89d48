package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// Sealed is a world as a program for WASI: it has one thread, without preemption, and nothing
// reaches it from outside but what Run fixes. So the same Run is the same to the last event.
type Sealed struct {
	World

	runtime wazero.Runtime
	program wazero.CompiledModule
}

// open translates a program for WASI to that of this machine.
func open(ctx context.Context, w World, file string) (*Sealed, error) {
	code, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := &Sealed{World: w, runtime: wazero.NewRuntime(ctx)}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, s.runtime); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	if s.program, err = s.runtime.CompileModule(ctx, code); err != nil {
		return nil, errors.Join(fmt.Errorf("translate %s: %w", file, err), s.Close(ctx))
	}
	return s, nil
}

// Close gives its memory back.
func (s *Sealed) Close(ctx context.Context) error { return s.runtime.Close(ctx) }

// Run runs it, in a memory and with a folder for files of its own; several may run at a time. A simulation that fails is no error.
func (s *Sealed) Run(ctx context.Context, r Run) (Result, error) {
	files, err := os.MkdirTemp("", "sealed")
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = os.RemoveAll(files) }()
	var out bytes.Buffer
	config := s.outside(r).WithStdout(&out).WithStderr(&out).WithFSConfig(wazero.NewFSConfig().WithDirMount(files, "/tmp"))
	_, err = s.runtime.InstantiateModule(ctx, s.program, config)
	exit := new(sys.ExitError)
	switch {
	case err != nil && !errors.As(err, &exit):
		err = fmt.Errorf("%w", err) // out of memory, a trap: the program is at fault
	case err != nil && exit.ExitCode() == 0:
		err = nil
	}
	return result(out.Bytes(), err)
}

// outside is all that the program gets from outside. Its time goes on by a little whenever it is
// asked for, and by a sleep at once.
func (s *Sealed) outside(r Run) wazero.ModuleConfig {
	const step = int64(time.Microsecond)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	var key [32]byte
	copy(key[:], fmt.Sprint("order ", r.Order))
	c := wazero.NewModuleConfig().WithName("").
		WithArgs(append([]string{s.Name}, r.args(s.World)...)...).
		WithEnv("GOGC", "400").
		WithRandSource(source{rand.NewChaCha8(key)}).
		WithNanotime(func() int64 { now += step; return now }, sys.ClockResolution(step)).
		WithWalltime(func() (int64, int32) {
			now += step
			return now / int64(time.Second), int32(now % int64(time.Second))
		}, sys.ClockResolution(step)).
		WithNanosleep(func(ns int64) { now += max(ns, 0) })
	for _, pair := range r.Env {
		name, value, _ := strings.Cut(pair, "=")
		c = c.WithEnv(name, value)
	}
	return c
}

// source is an io.Reader of random bytes.
type source struct{ *rand.ChaCha8 }
