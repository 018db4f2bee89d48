package aws

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ebs"
	ebstypes "github.com/aws/aws-sdk-go-v2/service/ebs/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/errgroup"

	"poolkeeper/providers"
	"poolkeeper/providers/imagefile"
)

const (
	// blockSize is that of EBS direct, which its answers repeat.
	blockSize = 512 << 10
	// blocksAtOnce are sent side by side: one takes some 50 ms.
	blocksAtOnce = 16
	gib          = 1 << 30
	// snapshotMinutes is after how long without a block Amazon gives a snapshot up.
	snapshotMinutes = 60
)

// direct writes a snapshot block by block. Holes are not sent, unless the snapshot is encrypted:
// then what is not written is not zero. Where the snapshot of an upload before is there still,
// only what differs from it is.
func (u *uploading) direct(ctx context.Context, reader *imagefile.Reader) (string, error) {
	size := max(1, (u.up.Size+gib-1)/gib)
	before := u.p.lastBlocks(ctx, u.up, size)
	start := &ebs.StartSnapshotInput{
		VolumeSize: sdk.Int64(max(size, before.Volume)), Description: sdk.String(cut(u.up.Name, 250)), Timeout: sdk.Int32(snapshotMinutes),
		ClientToken: sdk.String(u.id), ParentSnapshotId: text(before.Snapshot),
	}
	for _, t := range tags(u.up.Name, nil, u.tags) {
		start.Tags = append(start.Tags, ebstypes.Tag{Key: t.Key, Value: t.Value})
	}
	made, err := u.p.account.ebs.StartSnapshot(ctx, start)
	if err != nil && before.Snapshot != "" && errors.Is(failure(err), providers.ErrInvalid) || missing(err) {
		before = &blocks{} // it has gone, or cannot be a parent
		start.ParentSnapshotId, start.VolumeSize, start.ClientToken = nil, sdk.Int64(size), sdk.String(randomID())
		made, err = u.p.account.ebs.StartSnapshot(ctx, start)
	}
	if err != nil {
		return "", fmt.Errorf("start snapshot: %w", failure(err))
	}
	id := sdk.ToString(made.SnapshotId)
	u.before(func(ctx context.Context) error { return u.p.deleteSnapshot(ctx, id) })
	if sdk.ToInt32(made.BlockSize) != blockSize {
		return "", fmt.Errorf("%w: Amazon's blocks have %d bytes, we know %d", providers.ErrInvalid, sdk.ToInt32(made.BlockSize), blockSize)
	}
	w := &blockWriter{
		p: u.p, snapshot: id, before: before, encrypted: sdk.ToString(made.KmsKeyArn) != "",
		now: &blocks{Snapshot: id, Volume: sdk.ToInt64(start.VolumeSize)},
	}
	if err := w.write(ctx, reader); err != nil {
		return "", err
	}
	if err := u.complete(ctx, w); err != nil {
		return "", err
	}
	if u.up.Sent != nil {
		u.up.Sent(w.sent.Load(), u.up.Size-min(u.up.Size, w.sent.Load()))
	}
	u.p.keepBlocks(u.up, w.now)
	return id, nil
}

// complete ends the snapshot, and waits until it can be used.
func (u *uploading) complete(ctx context.Context, w *blockWriter) error {
	_, err := u.p.account.ebs.CompleteSnapshot(ctx, &ebs.CompleteSnapshotInput{SnapshotId: sdk.String(w.snapshot), ChangedBlocksCount: sdk.Int32(w.changed.Load())})
	if err == nil {
		return u.p.awaitSnapshot(ctx, w.snapshot)
	}
	if err = failure(err); errors.Is(err, providers.ErrInvalid) { // it was complete already, perhaps, and the answer lost
		soon, cancel := context.WithTimeout(ctx, u.p.fresh.settle)
		defer cancel()
		if u.p.awaitSnapshot(soon, w.snapshot) == nil {
			return nil
		}
	}
	return fmt.Errorf("complete snapshot: %w", err)
}

func (p *Provider) awaitSnapshot(ctx context.Context, id string) error {
	return p.await(ctx, "snapshot "+id, p.fresh.settle, func() (bool, error) {
		found, err := p.account.ec2.DescribeSnapshots(ctx, &ec2.DescribeSnapshotsInput{SnapshotIds: []string{id}})
		if err != nil {
			return false, err
		}
		s := theOne(found.Snapshots, id, func(s *types.Snapshot) *string { return s.SnapshotId })
		if s == nil {
			return false, nil
		}
		if s.State == types.SnapshotStateError {
			return false, fmt.Errorf("%w: Amazon gave up on snapshot %s: %s", providers.ErrTransient, id, said(sdk.ToString(s.StateMessage)))
		}
		return s.State == types.SnapshotStateCompleted, nil
	})
}

// blockWriter sends the blocks of an image.
type blockWriter struct {
	p        *Provider
	snapshot string
	before   *blocks // of the parent; without a snapshot there is none
	now      *blocks
	changed  atomic.Int32
	sent     atomic.Int64

	encrypted bool // what neither the parent has nor is sent is not zero
}

// write reads the image to its end, which tells whether it is the one that was built, and sends
// what has to be.
func (w *blockWriter) write(ctx context.Context, reader *imagefile.Reader) error {
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(blocksAtOnce)
	var index int32
	var failed error
	for ; ; index++ {
		block := make([]byte, blockSize)
		n, err := io.ReadFull(reader, block)
		if n > 0 {
			w.put(sending, group, index, block)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			if n > 0 {
				index++
			}
			break
		}
		if err != nil {
			failed = err
			break
		}
		if sending.Err() != nil {
			break
		}
	}
	empty := make([]byte, blockSize)
	last := max(int32(len(w.before.Sums)), w.rest())                       //nolint:gosec // EBS has fewer blocks
	for ; failed == nil && index < last && sending.Err() == nil; index++ { // what is behind the image is empty
		w.put(sending, group, index, empty)
	}
	return errors.Join(failed, group.Wait())
}

// rest is how many blocks the volume has, where all have to be written.
func (w *blockWriter) rest() int32 {
	if !w.encrypted {
		return 0
	}
	return int32(w.now.Volume * gib / blockSize) //nolint:gosec // 64 TiB at most
}

// put sends a block, unless the snapshot has it already.
func (w *blockWriter) put(ctx context.Context, group *errgroup.Group, index int32, block []byte) {
	sum := sha256.Sum256(block)
	w.now.Sums = append(w.now.Sums, sum)
	if !w.lacks(index, sum) {
		return
	}
	group.Go(func() error {
		_, err := w.p.account.ebs.PutSnapshotBlock(ctx, &ebs.PutSnapshotBlockInput{
			SnapshotId: sdk.String(w.snapshot), BlockIndex: sdk.Int32(index), BlockData: bytes.NewReader(block), DataLength: sdk.Int32(blockSize),
			Checksum: sdk.String(base64.StdEncoding.EncodeToString(sum[:])), ChecksumAlgorithm: ebstypes.ChecksumAlgorithmChecksumAlgorithmSha256,
		})
		if err != nil {
			return fmt.Errorf("send block %d: %w", index, failure(err))
		}
		w.changed.Add(1)
		w.sent.Add(blockSize)
		return nil
	})
}

// lacks reports whether the snapshot does not have a block as its parent has it. What no parent has is empty, unless
// the snapshot is encrypted: also behind a parent that is smaller.
func (w *blockWriter) lacks(index int32, sum [sha256.Size]byte) bool {
	if int(index) < len(w.before.Sums) {
		return sum != w.before.Sums[index]
	}
	return w.encrypted || sum != zeroSum()
}

// zeroSum returns the sum of an empty block.
var zeroSum = sync.OnceValue(func() [sha256.Size]byte { return sha256.Sum256(make([]byte, blockSize)) })
