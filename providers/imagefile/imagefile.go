// Package imagefile reads an image file once: while its bytes go to a cloud,
// their number and checksums are compared with what was built, so that no
// provider needs a second pass over gigabytes.
package imagefile

import (
	"context"
	"crypto/md5" // the format of Nodepool's .md5 files and of Glance's checksum, not a defence
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
	"sync"

	"poolkeeper/providers"
)

// blockSize is what WriteTo moves at once: large enough that two hashes in
// parallel pay, small enough to stay in the processor's cache.
const blockSize = 256 << 10

// Reader reads an image, tells its progress and withholds the last bytes when
// the whole is not what the upload promised. A Reader is for one goroutine.
type Reader struct {
	ctx    context.Context // of the upload, whose reads must end with it
	image  providers.ImageUpload
	file   *os.File
	sent   int64
	failed error
	sums   []sum
}

// sum is one running checksum and what it must come to.
type sum struct {
	name string
	want string
	hash.Hash
}

// Open opens the image's file and compares its size.
//
// Errors: providers.ErrInvalid when there is no such regular file,
// providers.ErrChecksum when its size is not image.Size.
func Open(ctx context.Context, image providers.ImageUpload) (*Reader, error) {
	file, err := os.Open(image.Path)
	if err != nil {
		return nil, fmt.Errorf("open image: %w: %w", providers.ErrInvalid, err)
	}
	if err := checkSize(file, image); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	r := &Reader{ctx: ctx, image: image, file: file}
	if image.Verified {
		return r, nil
	}
	if image.SHA256 != "" {
		r.sums = append(r.sums, sum{"sha256", image.SHA256, sha256.New()})
	}
	if image.MD5 != "" {
		r.sums = append(r.sums, sum{"md5", image.MD5, md5.New()})
	}
	return r, nil
}

func checkSize(file *os.File, image providers.ImageUpload) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("open image: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("open image: %w: %s is no regular file", providers.ErrInvalid, image.Path)
	}
	if info.Size() != image.Size {
		return fmt.Errorf("open image: %w: %s has %d bytes, %d were built",
			providers.ErrChecksum, image.Path, info.Size(), image.Size)
	}
	return nil
}

// File is the open file, for providers that let the kernel copy a Verified
// image. Its offset is the Reader's.
func (r *Reader) File() *os.File { return r.file }

// Read implements io.Reader. The read that would complete the file fails with
// providers.ErrChecksum instead when a checksum differs, so that no cloud ever
// receives a whole wrong image. It fails with the upload's ctx.
func (r *Reader) Read(p []byte) (int, error) {
	if r.failed != nil {
		return 0, r.failed
	}
	n, err := r.read(p)
	if err != nil {
		r.failed = err
	}
	return n, err
}

func (r *Reader) read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, fmt.Errorf("read image: %w", context.Cause(r.ctx))
	}
	left := r.image.Size - r.sent
	if left == 0 {
		return 0, r.end()
	}
	if int64(len(p)) > left {
		p = p[:left]
	}
	n, err := r.file.Read(p)
	if errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read image: %w: %s ended %d bytes early", providers.ErrChecksum, r.image.Path, left)
	}
	if err != nil {
		return 0, fmt.Errorf("read image: %w", err)
	}
	r.digest(p[:n])
	if int64(n) == left {
		if err := r.verify(); err != nil {
			return 0, err
		}
	}
	r.Advance(int64(n))
	return n, nil
}

// end is the error of a read behind the last byte. An empty file has had no
// other occasion to be verified.
func (r *Reader) end() error {
	if r.image.Size == 0 {
		if err := r.verify(); err != nil {
			return err
		}
	}
	return io.EOF
}

// Advance counts n bytes that left by another way than Read, and tells the
// upload's Progress.
func (r *Reader) Advance(n int64) {
	r.sent += n
	if r.image.Progress != nil {
		r.image.Progress(r.sent)
	}
}

// digest feeds every checksum, each on its own goroutine: md5 is the slowest
// part of an upload to a local disk and would otherwise wait for the other.
func (r *Reader) digest(block []byte) {
	if len(r.sums) == 0 {
		return
	}
	var others sync.WaitGroup
	for i := range r.sums[1:] {
		others.Go(func() { _, _ = r.sums[i+1].Write(block) })
	}
	_, _ = r.sums[0].Write(block) // a hash never fails
	others.Wait()
}

func (r *Reader) verify() error {
	for _, s := range r.sums {
		if got := hex.EncodeToString(s.Sum(nil)); !strings.EqualFold(got, s.want) {
			return fmt.Errorf("verify image: %w: %s of %s is %s, built was %s",
				providers.ErrChecksum, s.name, r.image.Path, got, s.want)
		}
	}
	return nil
}

// WriteTo implements io.WriterTo with blocks of a size that suits hashing.
func (r *Reader) WriteTo(w io.Writer) (int64, error) {
	var written int64
	block := make([]byte, blockSize)
	for {
		n, err := r.Read(block)
		if n > 0 {
			m, werr := w.Write(block[:n])
			written += int64(m)
			if werr != nil {
				return written, werr
			}
		}
		if errors.Is(err, io.EOF) {
			return written, nil
		}
		if err != nil {
			return written, err
		}
	}
}

// Close closes the file.
func (r *Reader) Close() error { return r.file.Close() }
