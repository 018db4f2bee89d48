package disk

import (
	"context"
	"crypto/md5" // the format of .md5 files and of Glance, not a defence
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
)

// Reading goes ahead of hashing by a few blocks, and the two hashes run beside
// each other: md5, the slower one, is the limit.
const (
	blockSize = 256 << 10
	blocks    = 4
)

// Sum reads a file once and returns its size and checksums. It ends with ctx.
// When .md5 and .sha256 files lie beside it, they must agree. No link is
// followed.
//
// Errors: ErrChecksum, ErrNoFile, ErrOutput.
func Sum(ctx context.Context, path string) (File, error) {
	f, _, err := openRegular(path)
	if err != nil {
		return File{}, fmt.Errorf("read image: %w", err)
	}
	defer func() { _ = f.Close() }()
	return sumOf(ctx, f, path)
}

// sumOf is Sum of an open file.
func sumOf(ctx context.Context, f *os.File, path string) (File, error) {
	before, err := f.Stat()
	if err != nil {
		return File{}, fmt.Errorf("read image: %w", err)
	}
	sums := []hash.Hash{md5.New(), sha256.New()}
	size, err := feed(ctx, f, sums)
	if err != nil {
		return File{}, fmt.Errorf("read image %s: %w", path, err)
	}
	file := File{
		Size: size, MD5: hex.EncodeToString(sums[0].Sum(nil)), SHA256: hex.EncodeToString(sums[1].Sum(nil)),
		Mark: markOf(before), OnDisk: onDisk(before),
	}
	if !file.Unchanged(path) {
		return File{}, fmt.Errorf("read image %s: %w: it changed while it was read", path, ErrChecksum)
	}
	return file, errors.Join(agree(path+".md5", file.MD5), agree(path+".sha256", file.SHA256))
}

// Unchanged reports whether the file at path is still the one that was read.
func (f File) Unchanged(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == f.Size && markOf(info) == f.Mark
}

// agree compares a checksum with the first word of a file, if there is one.
func agree(file, sum string) error {
	f, _, err := openRegular(file)
	if errors.Is(err, ErrNoFile) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read checksum: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, longestSums))
	if err != nil {
		return fmt.Errorf("read checksum: %w", err)
	}
	want, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if !strings.EqualFold(want, sum) {
		return fmt.Errorf("%w: %s says %q, the image has %s", ErrChecksum, file, shortened(want), sum)
	}
	return nil
}

// shortened is as much of a word as a message needs.
func shortened(word string) string { return word[:min(len(word), sha256.Size*2)] }

// feed reads r to its end and writes every block to all sums at once.
func feed(ctx context.Context, r io.Reader, sums []hash.Hash) (int64, error) {
	free := make(chan []byte, blocks)
	for range blocks {
		free <- make([]byte, blockSize)
	}
	var hashers sync.WaitGroup
	lanes := make([]chan *block, len(sums))
	for i := range sums {
		lanes[i] = make(chan *block, blocks)
		hashers.Go(func() {
			for b := range lanes[i] {
				_, _ = sums[i].Write(b.data) // a hash never fails
				b.done(free)
			}
		})
	}
	defer hashers.Wait()
	defer func() {
		for _, lane := range lanes {
			close(lane)
		}
	}()
	var size int64
	for {
		if ctx.Err() != nil {
			return size, context.Cause(ctx)
		}
		buffer := <-free
		n, err := io.ReadFull(r, buffer[:blockSize])
		size += int64(n)
		b := &block{data: buffer[:n]}
		b.users.Store(int32(len(sums)))
		for _, lane := range lanes {
			lane <- b
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return size, nil
		case err != nil:
			return size, err
		}
	}
}

// block is a stretch of a file that several hashes read.
type block struct {
	data  []byte
	users atomic.Int32
}

// done gives the buffer back when the last hash has read it.
func (b *block) done(free chan<- []byte) {
	if b.users.Add(-1) == 0 {
		free <- b.data[:cap(b.data)]
	}
}
