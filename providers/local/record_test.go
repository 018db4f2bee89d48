package local

import (
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What a crash leaves of a record lies in the folder that goes with it, and not in
// the temporary folder of the machine.
func TestRecordIsWrittenInItsFolder(t *testing.T) {
	dir, tmp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", tmp)
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	made := map[int]string{}
	for _, folder := range []string{dir, tmp} {
		wd, err := unix.InotifyAddWatch(fd, folder, unix.IN_CREATE)
		if err != nil {
			t.Fatal(err)
		}
		made[wd] = folder
	}
	if err := writeRecord(filepath.Join(dir, recordName), map[string]string{"a": "b"}); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 4096)
	n, err := unix.Read(fd, buffer)
	if err != nil {
		t.Fatal(err)
	}
	for rest := buffer[:n]; len(rest) > unix.SizeofInotifyEvent; {
		size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
		if folder := made[int(binary.NativeEndian.Uint32(rest))]; folder != dir {
			t.Errorf("made in %s: %s", folder, strings.TrimRight(string(rest[unix.SizeofInotifyEvent:size]), "\x00"))
		}
		rest = rest[size:]
	}
}
