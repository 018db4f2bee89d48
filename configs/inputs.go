package configs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"poolkeeper/configs/kit"
)

// maxFile is the most that one file may hold, in bytes: a hundred times the
// largest configuration that we know of. What is longer is no configuration but
// a disk, a log or /dev/zero, and must not fill the memory.
const maxFile = 16 << 20

var (
	// errTooLarge says that a file is longer than maxFile.
	errTooLarge = errors.New("file too large")
	// errNotRegular says that a path is no file, nor a link to one. Who reads a
	// pipe that nobody writes to waits for ever.
	errNotRegular = errors.New("not a regular file")
)

// inputs are the files that a configuration depends on, each with the digest
// of its content, "" for one that was looked for and not there.
type inputs map[string]string

// read reads a file and remembers its content's digest.
func (l *loader) read(path string) ([]byte, error) {
	content, err := readFile(path)
	if err != nil {
		l.inputs[path] = ""
		return nil, err
	}
	l.inputs[path] = digest(content)
	return content, nil
}

// readFile is os.ReadFile with a limit, for files alone: it never waits for a
// pipe or a device.
//
// Errors: errTooLarge, errNotRegular, or those of the file system, naming the
// file.
func readFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|kit.NonBlock, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w", path, errNotRegular)
	}
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("read %s: %w: more than %d MiB", path, errTooLarge, maxFile>>20)
	}
	return content, err
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Files lists the files that the configuration was read from, and those that were
// looked for and not there, by their paths.
func (c *Config) Files() []string { return slices.Sorted(maps.Keys(c.inputs)) }

// Digest identifies the content of all the files that the configuration was
// read from: the file itself, the secure file, clouds.yaml, key files.
func (c *Config) Digest() string { return c.inputs.digest() }

// DigestNow is what Digest would be if the configuration were read now. When
// it differs from Digest, it is time to reload; when that fails, remember it,
// and try again when it differs from what is remembered. A file that cannot be
// read counts as unchanged, unless it is gone.
func (c *Config) DigestNow() string {
	now := inputs{}
	for path, before := range c.inputs {
		content, err := readFile(path)
		switch {
		case err == nil:
			now[path] = digest(content)
			if path == c.SecretKey {
				now[path] += closedness(path)
			}
		case errors.Is(err, fs.ErrNotExist):
			now[path] = ""
		default:
			now[path] = before
		}
	}
	return now.digest()
}

// digest is one digest over all.
func (in inputs) digest() string {
	var all []byte
	for _, path := range slices.Sorted(maps.Keys(in)) {
		all = append(all, path+"\x00"+in[path]+"\n"...)
	}
	return digest(all)
}
