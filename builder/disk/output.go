package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// longestSums is how much of a checksum file is read, in bytes: one line.
const longestSums = 4 << 10

// openRegular opens a file that is to be read, and nothing else: a link may lead
// to a file of this host, a FIFO never answers, a device never ends.
//
// Errors: ErrNoFile, ErrOutput.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|careful, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("%w: %s", ErrNoFile, path)
	case errors.Is(err, syscall.ELOOP):
		return nil, nil, fmt.Errorf("%w: %s is a link", ErrOutput, path)
	case errors.Is(err, unreadable):
		return nil, nil, fmt.Errorf("%w: %s is no regular file", ErrOutput, path)
	case err != nil:
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s is no regular file", ErrOutput, path)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// Output reads what a build's command has made of a format, and returns its size
// and checksums. It must be a file of ours that can be an image: not empty, of
// the format, and no link.
//
// Errors: ErrOutput, ErrChecksum, ErrNoFile.
func (d *Images) Output(ctx context.Context, n Name, format string) (File, error) {
	path := d.File(n, format)
	f, info, err := openRegular(path)
	if err != nil {
		return File{}, fmt.Errorf("read image: %w", err)
	}
	defer func() { _ = f.Close() }()
	if err := d.usable(f, info, format); err != nil {
		return File{}, fmt.Errorf("read image: %w", err)
	}
	// An image may hold what not every user of this host is to read.
	if err := f.Chmod(info.Mode().Perm() & imageMode); err != nil && !errors.Is(err, fs.ErrPermission) {
		return File{}, fmt.Errorf("read image: %w", err)
	}
	return sumOf(ctx, f, path)
}

// imageMode is who may read an image, at most: its owner and group.
const imageMode = 0o640

// usable refuses what cannot be an image of ours.
func (d *Images) usable(f *os.File, info fs.FileInfo, format string) error {
	user, err := userOf(info)
	if err != nil {
		return err
	}
	// Parts of a build run as root, through sudo; a command may run as the owner
	// of the folder.
	home, err := os.Stat(d.dir)
	if err != nil {
		return err
	}
	owner, err := userOf(home)
	if err != nil {
		return err
	}
	if user != 0 && user != owner && user != os.Geteuid() {
		return fmt.Errorf("%w: %s belongs to user %d", ErrOutput, f.Name(), user)
	}
	if info.Size() == 0 {
		return fmt.Errorf("%w: %s is empty", ErrOutput, f.Name())
	}
	is, err := isFormat(f, info.Size(), format)
	if err != nil {
		return fmt.Errorf("read %s: %w", f.Name(), err)
	}
	if !is {
		return fmt.Errorf("%w: %s is not in the format %s", ErrOutput, f.Name(), format)
	}
	return nil
}

// signature is what a file of a format has at a place; a negative place counts
// from its end.
type signature struct {
	at   int64
	text string
}

// signatures are those of the formats that have one; one of them must be there.
var signatures = map[string][]signature{
	"qcow2":    {{0, "QFI\xfb"}},
	"vhd":      {{-512, "conectix"}, {-511, "conectix"}},
	"vhdx":     {{0, "vhdxfile"}},
	"vmdk":     {{0, "KDMV"}, {0, "COWD"}, {0, "# Disk DescriptorFile"}},
	"vdi":      {{64, "\x7f\x10\xda\xbe"}},
	"tar":      {{257, "ustar"}},
	"tgz":      {{0, "\x1f\x8b"}},
	"squashfs": {{0, "hsqs"}},
}

// isFormat reports whether a file can be of a format. Of formats without a
// signature, as raw, any can.
func isFormat(f io.ReaderAt, size int64, format string) (bool, error) {
	marks, known := signatures[format]
	for _, m := range marks {
		at := m.at
		if at < 0 {
			at += size
		}
		if at < 0 || at+int64(len(m.text)) > size {
			continue
		}
		text := make([]byte, len(m.text))
		if _, err := f.ReadAt(text, at); err != nil {
			return false, err
		}
		if bytes.Equal(text, []byte(m.text)) {
			return true, nil
		}
	}
	return !known, nil
}
