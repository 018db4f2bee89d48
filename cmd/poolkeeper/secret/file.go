package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"poolkeeper/configs/sealed"
	"poolkeeper/configs/yamltext"
)

// errChanged: somebody else has written a file meanwhile.
var errChanged = errors.New("it has changed meanwhile, try again")

// file is a file with sealed values.
type file struct {
	name string // as it was given
	path string // without links
	info fs.FileInfo
	text []byte
	yaml *yamltext.File
}

// readFile reads a file with sealed values.
func readFile(name string) (*file, error) {
	path, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, err
	}
	f := &file{name: name, path: path}
	if f.info, err = os.Stat(path); err != nil {
		return nil, err
	}
	if !f.info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	if f.text, err = os.ReadFile(path); err != nil {
		return nil, err
	}
	if f.yaml, err = yamltext.Parse(f.text); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// readFiles reads several, each once.
func readFiles(names []string) ([]*file, error) {
	var files []*file
	seen := map[string]bool{}
	var failed error
	for _, name := range names {
		f, err := readFile(name)
		failed = errors.Join(failed, err)
		if err == nil && !seen[f.path] {
			seen[f.path] = true
			files = append(files, f)
		}
	}
	return files, failed
}

// values are those that are sealed.
func (f *file) values() []yamltext.Scalar {
	var list []yamltext.Scalar
	for _, s := range f.yaml.Scalars() {
		if sealed.Is(s.Value) {
			list = append(list, s)
		}
	}
	return list
}

// resealed is the text with all values that are not sealed to a recipient sealed anew, and
// these values. It has an error for each value that cannot be opened, which stays as it is.
func (f *file) resealed(keys *sealed.Keys, recipient string) ([]byte, []yamltext.Scalar, error) {
	var failed error
	var anew []yamltext.Scalar
	changes := map[string]string{}
	for _, s := range f.values() {
		place := s.Path.String()
		_, err := keys.Open(s.Value, place)
		if err == nil && sealed.Recipient(s.Value) == recipient {
			continue
		}
		text := ""
		if err == nil {
			text, err = keys.Reseal(recipient, s.Value, place, time.Now())
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s:%d: %s: %w", f.name, s.Line, place, err))
			continue
		}
		changes[place] = text
		anew = append(anew, s)
	}
	if len(changes) == 0 {
		return f.text, nil, failed
	}
	text, err := f.yaml.Change(changes)
	if err != nil {
		return f.text, nil, errors.Join(failed, fmt.Errorf("%s: %w", f.name, err))
	}
	return text, anew, failed
}

// write replaces the file at once, unless it has changed since it was read.
func (f *file) write(text []byte) error {
	if err := replaceFile(f.path, f.text, text, f.info); err != nil {
		return fmt.Errorf("write %s: %w", f.name, err)
	}
	return nil
}

// replaceFile replaces a file at once by one of the same owner, group and mode, unless its text
// is not what it was. The lock of its folder keeps our own commands away; editors know no lock,
// so that the text is compared last of all.
func replaceFile(path string, before, text []byte, was fs.FileInfo) error {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(was.Mode().Perm()))
	if err != nil {
		return err
	}
	defer f.Cleanup() //nolint:errcheck // nothing is left once it has replaced the other
	if of, ok := was.Sys().(*syscall.Stat_t); ok {
		if err := f.Chown(int(of.Uid), int(of.Gid)); err != nil {
			return err
		}
	}
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	switch now, err := os.ReadFile(path); {
	case err != nil:
		return err
	case !bytes.Equal(now, before):
		return errChanged
	}
	return f.CloseAtomicallyReplace()
}
