package configs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
)

// inputs are the files that a configuration depends on, each with the digest
// of its content, "" for one that was looked for and not there.
type inputs map[string]string

// read reads a file and remembers its content's digest.
func (l *loader) read(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		l.inputs[path] = ""
		return nil, err
	}
	l.inputs[path] = digest(content)
	return content, nil
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Changed tells whether a file that the configuration was read from has other
// content now: the file itself, the secure file, clouds.yaml, key files. A
// file that cannot be read has not changed, unless it is gone.
func (c *Config) Changed() bool {
	for path, before := range c.inputs {
		content, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if before != "" {
				return true
			}
		case err == nil && digest(content) != before:
			return true
		}
	}
	return false
}

// Digest identifies the content of all the files that the configuration was
// read from. Equal digests mean equal files.
func (c *Config) Digest() string {
	hash := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(c.inputs)) {
		hash.Write([]byte(path + "\x00" + c.inputs[path] + "\n"))
	}
	return hex.EncodeToString(hash.Sum(nil))
}
