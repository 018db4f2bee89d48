package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"poolkeeper/providers"
	"poolkeeper/providers/imagefile"
)

const (
	// copyBlock is what is copied before the disk is told to begin to write it,
	// and what the kernel copies between two looks at the context.
	copyBlock = 16 << 20
	// holeBlock is the smallest run of zeros that becomes a hole.
	holeBlock = 64 << 10
)

// copyImage copies the upload's file to path, checked as its Reader does, its
// zeros as holes, and flushes it to the disk.
func copyImage(ctx context.Context, path string, up providers.ImageUpload) (err error) {
	src, err := imagefile.Open(ctx, up)
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // only read
	dst, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	if up.Verified {
		err = kernelCopy(ctx, dst, src, up.Size)
	} else {
		_, err = io.Copy(&sparseWriter{file: dst}, src)
	}
	if err != nil {
		return err
	}
	if err := dst.Truncate(up.Size); err != nil { // a hole at the end
		return err
	}
	return dst.Sync()
}

// writeBehind lets the disk write a stretch of the file while the next one is
// copied, so that the flush at the end finds little to do. It is a hint.
func writeBehind(f *os.File, from, size int64) {
	_ = unix.SyncFileRange(int(f.Fd()), from, size, unix.SYNC_FILE_RANGE_WRITE)
}

// sparseWriter leaves out blocks of zeros.
type sparseWriter struct {
	file *os.File
	at   int64
	zero [holeBlock]byte
}

func (w *sparseWriter) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		block := p[done:min(done+holeBlock, len(p))]
		if !bytes.Equal(block, w.zero[:len(block)]) {
			if n, err := w.file.WriteAt(block, w.at); err != nil {
				return done + n, err
			}
		}
		done += len(block)
		w.at += int64(len(block))
		if w.at%copyBlock == 0 {
			writeBehind(w.file, w.at-copyBlock, copyBlock)
		}
	}
	return done, nil
}

// kernelCopy copies what is not a hole without looking at it: on file systems
// that can, the copy shares the blocks of the original.
func kernelCopy(ctx context.Context, dst *os.File, src *imagefile.Reader, size int64) error {
	for at := int64(0); at < size; {
		data, end, err := nextData(src.File(), at, size)
		if err != nil {
			return err
		}
		src.Advance(data - at)
		if err := copyRange(ctx, dst, src, data, end); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// nextData finds the next stretch that is not a hole, from..to within size.
func nextData(f *os.File, at, size int64) (from, to int64, err error) {
	from, err = f.Seek(at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO): // only a hole is left
		return size, size, nil
	case errors.Is(err, unix.EINVAL): // no holes on this file system
		return at, size, nil
	case err != nil:
		return 0, 0, err
	}
	to, err = f.Seek(from, unix.SEEK_HOLE)
	if err != nil {
		return 0, 0, err
	}
	return min(from, size), min(to, size), nil
}

func copyRange(ctx context.Context, dst *os.File, src *imagefile.Reader, from, to int64) error {
	if _, err := src.File().Seek(from, io.SeekStart); err != nil {
		return err
	}
	if _, err := dst.Seek(from, io.SeekStart); err != nil {
		return err
	}
	for from < to {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := io.CopyN(dst, src.File(), min(copyBlock, to-from)) // copy_file_range
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: %s shrank while it was copied", providers.ErrChecksum, src.File().Name())
		}
		if err != nil {
			return err
		}
		writeBehind(dst, from, n)
		from += n
		src.Advance(n)
	}
	return nil
}
