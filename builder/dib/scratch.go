package dib

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"poolkeeper/configs/kit"
)

// tokenVariable carries the token of a scratch folder in the environment of all
// that works for its build.
const tokenVariable = "POOLKEEPER_BUILD"

// markerFile lies in a scratch folder and names its owner.
const markerFile = ".poolkeeper-build"

// Scratch is the private folder of one build. It may lie where others can write,
// so its name tells nothing to them, and nothing in it or of its processes is
// touched unless it proves to be of this build. Without Dir there is no folder,
// only processes.
type Scratch struct {
	// Dir is the folder: absolute, and no part of it a link.
	Dir string `json:"tmp_dir"`
	// Owner is the id of the builder.
	Owner string `json:"builder,omitempty"`
	// Token is random, and in the environment of the build's processes alone.
	Token string `json:"token,omitempty"`

	// Instead of a token, what the environment of a build of an earlier release
	// says: TMP_DIR, DIB_IMAGE_FILENAME.
	tmpDir, base string
}

// NewScratch names a folder below parent, which is made when it is missing. The
// folder itself is not made yet, so that its name can be noted first.
func NewScratch(parent, name, owner string) (Scratch, error) {
	parent, err := filepath.Abs(parent)
	if err != nil {
		return Scratch{}, fmt.Errorf("name temporary folder: %w", err)
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return Scratch{}, fmt.Errorf("name temporary folder: %w", err)
	}
	if parent, err = filepath.EvalSymlinks(parent); err != nil {
		return Scratch{}, fmt.Errorf("name temporary folder: %w", err)
	}
	dir := filepath.Join(parent, name+"."+kit.RandomHex(16)[:12])
	return Scratch{Dir: dir, Owner: owner, Token: kit.RandomHex(16)}, nil
}

// LegacyScratch is the folder of a build that an earlier release made, which
// marked nothing: base is the path of the build's files.
func LegacyScratch(dir, base string) Scratch {
	s := Scratch{Dir: dir, tmpDir: dir, base: base}
	if parent, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		s.Dir = filepath.Join(parent, filepath.Base(dir))
	}
	return s
}

// mark is what the marker of the folder says.
func (s Scratch) mark() string { return s.Owner + "\n" + s.Token + "\n" }

// legacy reports whether the folder was made by a release that marked nothing.
func (s Scratch) legacy() bool { return s.Token == "" }

// sweepable refuses folders that nobody gives to a build alone.
func (s Scratch) sweepable() error {
	if !strings.HasPrefix(s.Dir, "/") || strings.Count(s.Dir, "/") < 2 || filepath.Clean(s.Dir) != s.Dir {
		return fmt.Errorf("sweep build: %w: %q is no folder of a build", ErrLeft, s.Dir)
	}
	return nil
}
