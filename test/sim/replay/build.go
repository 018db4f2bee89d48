package replay

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// World is a simulation: a test that calls series.Run.
type World struct {
	Name    string
	Package string // below the root of the module
	Test    string
	fixed   int // seeds that are held to repeat: the first ones; where there are more than one, another order is run, too
}

// Worlds are all that there are.
var Worlds = []World{
	{"locks", "test/sim", "TestLocks", 2},
	{"site", "test/sim/site", "TestSite", 1},
	{"builders", "test/sim/builders", "TestBuilders", 1},
}

// Build compiles a world's tests for this machine, into dir. tags may be "".
func (w World) Build(ctx context.Context, root, dir, tags string) (Native, error) {
	native := Native{World: w, file: filepath.Join(dir, w.Name+".test"), dir: filepath.Join(root, w.Package)}
	return native, w.compile(ctx, root, native.file, tags)
}

// Seal compiles them for WASI.
func (w World) Seal(ctx context.Context, root, dir, tags string) (*Sealed, error) {
	file := filepath.Join(dir, w.Name+".wasm")
	if err := w.compile(ctx, root, file, tags, "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0"); err != nil {
		return nil, err
	}
	return open(ctx, w, file)
}

func (w World) compile(ctx context.Context, root, file, tags string, env ...string) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-trimpath", "-ldflags=-s -w", "-tags", tags, "-o", file, "./"+w.Package)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s %v: %w\n%s", w.Package, env, err, out)
	}
	return nil
}
