package recipe

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"poolkeeper/configs/kit"
)

const (
	// shardSize is how many bytes a shard holds: half of what a server accepts, so that
	// one with a lower limit takes it, too, and others' requests are not held up for long.
	shardSize = 512 << 10
	// maxBlob is the most that a blob may hold, in bytes before compression.
	maxBlob = 64 << 20
)

// Blob names data that is stored in shards, since a node holds less than 1 MiB. It is
// nothing until a node refers to it: all shards are written first, and the
// Blob is stored in a record afterwards.
type Blob struct {
	// ID is the name of the node above the shards.
	ID string `json:"id"`
	// Shards is how many there are.
	Shards int `json:"shards"`
	// Size is that of the data in bytes, before compression.
	Size int `json:"size"`
	// Digest is the data's SHA-256 in hex, before compression.
	Digest string `json:"digest"`
}

// BlobDigest is the digest that a Blob of the data has.
func BlobDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// blobShard is the path of a shard.
func blobShard(dir, id string, n int) string {
	return joinPath(joinPath(dir, id), fmt.Sprintf("%04d", n))
}

// WriteBlob stores data below dir, which is created when missing, compressed and in
// shards, each behind the fence. What an error leaves behind is for CollectBlobs, under
// the same lock. Data beyond 64 MiB is ErrTooLarge.
func (h *Held) WriteBlob(ctx context.Context, dir string, data []byte) (Blob, error) {
	if len(data) > maxBlob {
		return Blob{}, fmt.Errorf("write blob below %s: %w: %d bytes", dir, ErrTooLarge, len(data))
	}
	packed, err := pack(data)
	if err != nil {
		return Blob{}, fmt.Errorf("write blob below %s: %w", dir, err)
	}
	if err := h.session.EnsurePath(ctx, dir); err != nil {
		return Blob{}, err
	}
	b := Blob{ID: kit.RandomHex(16), Size: len(data), Digest: BlobDigest(data)}
	if _, err := h.Create(ctx, joinPath(dir, b.ID), nil, Persistent); err != nil {
		return Blob{}, err
	}
	for len(packed) > 0 {
		n := min(len(packed), shardSize)
		if _, err := h.Create(ctx, blobShard(dir, b.ID, b.Shards), packed[:n], Persistent); err != nil {
			return Blob{}, err
		}
		packed = packed[n:]
		b.Shards++
	}
	return b, nil
}

// ReadBlob returns the data of a blob below dir, which is what was written or an error:
// ErrDamaged where a shard is missing, or the shards are not those that the Blob tells of.
func (s *Session) ReadBlob(ctx context.Context, dir string, b Blob) ([]byte, error) {
	damaged := func(format string, args ...any) ([]byte, error) {
		return nil, fmt.Errorf("read blob %s: %w: %s", joinPath(dir, b.ID), ErrDamaged, fmt.Sprintf(format, args...))
	}
	if b.Size < 0 || b.Size > maxBlob || b.Shards < 1 || b.Shards > maxBlob/shardSize+2 {
		return damaged("%d bytes in %d shards cannot be", b.Size, b.Shards)
	}
	var packed []byte
	for n := range b.Shards {
		shard, _, err := s.Get(ctx, blobShard(dir, b.ID, n))
		if errors.Is(err, ErrNoNode) {
			return damaged("shard %d of %d is missing", n+1, b.Shards)
		}
		if err != nil {
			return nil, err
		}
		packed = append(packed, shard...)
	}
	data, err := unpack(packed, b.Size)
	switch {
	case err != nil:
		return damaged("%v", err)
	case len(data) != b.Size:
		return damaged("its size is not %d bytes", b.Size)
	case BlobDigest(data) != b.Digest:
		return damaged("its digest is not %s", b.Digest)
	}
	return data, nil
}

// CollectBlobs deletes the blobs below dir that keep does not want, behind the fence, and
// returns how many there were. h must be the lock under which blobs are written and
// referred to: another one's writer could be between the two.
func (h *Held) CollectBlobs(ctx context.Context, dir string, keep func(id string) bool) (int, error) {
	ids, err := h.session.Children(ctx, dir)
	if errors.Is(err, ErrNoNode) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	collected := 0
	for _, id := range ids {
		if keep(id) {
			continue
		}
		if err := h.DeleteTree(ctx, joinPath(dir, id)); err != nil {
			return collected, err
		}
		collected++
	}
	return collected, nil
}

// pack compresses data.
func pack(data []byte) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(data)
	err = errors.Join(err, z.Close())
	return out.Bytes(), err
}

// unpack is the inverse of pack, for at most size bytes and one more: what was put in
// their place may be made to fill the memory.
func unpack(packed []byte, size int) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, int64(size)+1))
}
