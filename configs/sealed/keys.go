// Package sealed keeps values of a configuration unreadable for all who have not the
// fleet's key: sealed text can stand in files that many read, and opens only on hosts with
// a key file, and only at the place that it was sealed for.
package sealed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"filippo.io/age"
)

// Why a sealed value is not opened.
var (
	// ErrKeyFile: the file with the keys cannot be used.
	ErrKeyFile = errors.New("unusable key file")
	// ErrNoKey: there is no key that opens the value.
	ErrNoKey = errors.New("no key opens it")
	// ErrElsewhere: the value is sealed for another place.
	ErrElsewhere = errors.New("sealed for another place")
	// ErrDamaged: the text is not what was sealed.
	ErrDamaged = errors.New("damaged")
	// ErrValue: the value cannot be sealed, or the recipient is none.
	ErrValue = errors.New("cannot be sealed")
)

// maxKeyFile is the most that a key file may hold, in bytes.
const maxKeyFile = 64 << 10

// Keys are those of one key file, the newest first: values are sealed to that, and opened
// by any. Nil opens nothing.
type Keys struct {
	file  string
	list  []*age.X25519Identity
	text  []byte
	fault error // why it opens nothing
}

// Read reads a key file, and switches core dumps off, for good: from here on the memory
// holds what nobody may read. The file must be closed to all but its owner.
//
// Errors: ErrKeyFile, with the file and its mode; fs.ErrNotExist. The Keys that come with
// an error open nothing, and say why.
func Read(file string) (*Keys, error) {
	NoCoreDumps()
	text, err := ReadClosed(file)
	if err != nil {
		return &Keys{file: file, fault: err}, err
	}
	k, err := parse(file, text)
	if err != nil {
		return &Keys{file: file, fault: err}, err
	}
	return k, nil
}

// New makes a key for a file that there is not yet.
func New(file string) (*Keys, error) {
	NoCoreDumps()
	return (&Keys{file: file}).WithNew()
}

// WithNew are the keys with a new one before them.
func (k *Keys) WithNew() (*Keys, error) {
	one, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	text := append(encode(one), k.text...)
	return parse(k.file, text)
}

// Newest are the keys without the older ones.
func (k *Keys) Newest() *Keys {
	return &Keys{file: k.file, list: k.list[:1], text: encode(k.list[0])}
}

// Bytes are what is written into the key file.
func (k *Keys) Bytes() []byte { return k.text }

// File is the path of the key file.
func (k *Keys) File() string { return k.file }

// Recipients are the public halves, the newest first.
func (k *Keys) Recipients() []string {
	list := make([]string, 0, len(k.list))
	for _, one := range k.list {
		list = append(list, one.Recipient().String())
	}
	return list
}

// String names the file, and no key.
func (k *Keys) String() string { return "keys of " + k.file }

// GoString is String, so that %#v shows no key either.
func (k *Keys) GoString() string { return k.String() }

// encode is a key as age-keygen writes it.
func encode(one *age.X25519Identity) []byte {
	return fmt.Appendf(nil, "# public key: %s\n%s\n", one.Recipient(), one)
}

// parse reads the text of a key file, which age-keygen may have written.
func parse(file string, text []byte) (*Keys, error) {
	k := &Keys{file: file, text: text}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		one := strings.TrimSpace(string(line))
		if one == "" || one[0] == '#' {
			continue
		}
		identity, err := age.ParseX25519Identity(one)
		if err != nil { // its words may quote the line
			return nil, fmt.Errorf("%w: %s:%d: the line is no key as `poolkeeper secret keygen` makes it", ErrKeyFile, file, number)
		}
		k.list = append(k.list, identity)
	}
	if len(k.list) == 0 {
		return nil, fmt.Errorf("%w: %s holds no key", ErrKeyFile, file)
	}
	return k, nil
}

// ReadClosed reads a file that only its owner may read, and no other kind of file.
//
// Errors: ErrKeyFile, with the file and why; fs.ErrNotExist.
func ReadClosed(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|nonBlock, 0) // a pipe is not waited for
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read key file %s: %w", file, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeyFile, err)
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeyFile, err)
	}
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return nil, fmt.Errorf("%w: %s is no regular file", ErrKeyFile, file)
	case Open(mode):
		return nil, fmt.Errorf("%w: %s has mode %#o, others may read it: chmod 600", ErrKeyFile, file, mode.Perm())
	case info.Size() > maxKeyFile:
		return nil, fmt.Errorf("%w: %s is too long", ErrKeyFile, file)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeyFile, err)
	}
	return text, nil
}

// Open reports whether others than the owner may read, write or execute what has a mode.
func Open(mode fs.FileMode) bool { return mode.Perm()&0o077 != 0 }
