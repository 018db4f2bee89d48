package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"poolkeeper/providers"
)

// qemuFormat is QEMU's name of an image format, "" when guests cannot boot it.
func qemuFormat(format string) string {
	switch format {
	case "qcow2", "raw", "vmdk", "vhdx", "vdi":
		return format
	case "vhd":
		return "vpc"
	}
	return ""
}

// checkFormat refuses what no guest could boot, and a qcow2 that reads other
// files of this host: its header may name any as its backing or data file.
//
// Errors: providers.ErrInvalid.
func checkFormat(up providers.ImageUpload) error {
	if qemuFormat(up.Format) == "" {
		return fmt.Errorf("%w: QEMU boots no %q image", providers.ErrInvalid, up.Format)
	}
	if up.Format != "qcow2" {
		return nil
	}
	f, err := os.Open(up.Path)
	if err != nil {
		return fmt.Errorf("%w: %w", providers.ErrInvalid, err)
	}
	defer f.Close() //nolint:errcheck // only read
	// The header as docs/interop/qcow2.txt of QEMU has it.
	var h struct {
		Magic, Version uint32
		Backing        uint64
		_              [56]byte
		Features       uint64 // of version 3 only
	}
	err = binary.Read(f, binary.BigEndian, &h)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %s is too short for a qcow2", providers.ErrInvalid, up.Path)
	case err != nil:
		return err
	case h.Magic != 'Q'<<24|'F'<<16|'I'<<8|0xfb:
		return fmt.Errorf("%w: %s is no qcow2", providers.ErrInvalid, up.Path)
	case h.Backing != 0:
		return fmt.Errorf("%w: %s has a backing file", providers.ErrInvalid, up.Path)
	case h.Version >= 3 && h.Features&(1<<2) != 0:
		return fmt.Errorf("%w: %s keeps its data in another file", providers.ErrInvalid, up.Path)
	}
	return nil
}
