package dib

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

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

// Make makes the folder, for its owner alone. A folder that is there already is
// somebody else's.
func (s Scratch) Make() error {
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		return fmt.Errorf("make temporary folder of build: %w", err)
	}
	dir, err := openFolder(s.Dir)
	if err != nil {
		return fmt.Errorf("make temporary folder of build: %w", err)
	}
	defer func() { _ = dir.Close() }()
	if err := own(dir); err != nil {
		return fmt.Errorf("make temporary folder of build: %w", err)
	}
	fd, err := unix.Openat(int(dir.Fd()), markerFile, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("mark temporary folder of build: %w", err)
	}
	marker := os.NewFile(uintptr(fd), markerFile)
	_, err = marker.WriteString(s.mark())
	if err = errors.Join(err, marker.Close()); err != nil {
		return fmt.Errorf("mark temporary folder of build: %w", err)
	}
	return nil
}

// mark is what the marker of the folder says.
func (s Scratch) mark() string { return s.Owner + "\n" + s.Token + "\n" }

// legacy reports whether the folder was made by a release that marked nothing.
func (s Scratch) legacy() bool { return s.Token == "" }

// prove makes sure that the folder is the one that Make made. An error that is
// fs.ErrNotExist says that there is none.
func (s Scratch) prove() error {
	dir, err := openFolder(s.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if err := own(dir); err != nil || s.legacy() {
		return err
	}
	fd, err := unix.Openat(int(dir.Fd()), markerFile, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) && empty(dir) {
		return nil // we died between the folder and its marker
	}
	if err != nil {
		return fmt.Errorf("%s: open %s: %s", s.Dir, markerFile, err.Error())
	}
	marker := os.NewFile(uintptr(fd), markerFile)
	defer func() { _ = marker.Close() }()
	text, err := io.ReadAll(io.LimitReader(marker, 4<<10))
	if err == nil && (string(text) == s.mark() || strings.HasPrefix(s.mark(), string(text)) && onlyMarker(dir)) {
		return nil // whole, or we died when we wrote it
	}
	return fmt.Errorf("%s has the mark of another build", s.Dir)
}

// own refuses a folder that belongs to somebody else.
func own(dir *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return fmt.Errorf("%s: %w", dir.Name(), err)
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d", dir.Name(), st.Uid)
	}
	return nil
}

// onlyMarker reports whether a folder holds the marker and nothing else.
func onlyMarker(dir *os.File) bool {
	names, err := dir.Readdirnames(2)
	return err == nil && len(names) == 1 && names[0] == markerFile
}

func empty(dir *os.File) bool {
	_, err := dir.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

// openFolder opens a folder that no link leads to.
//
// Errors: fs.ErrNotExist.
func openFolder(path string) (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return nil, fmt.Errorf("%s is a link or no folder", path)
	case err != nil:
		return nil, fmt.Errorf("open folder %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// sweepable refuses folders that nobody gives to a build alone.
func (s Scratch) sweepable() error {
	if !strings.HasPrefix(s.Dir, "/") || strings.Count(s.Dir, "/") < 2 || filepath.Clean(s.Dir) != s.Dir {
		return fmt.Errorf("sweep build: %w: %q is no folder of a build", ErrLeft, s.Dir)
	}
	return nil
}
