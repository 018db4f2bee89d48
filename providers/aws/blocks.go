package aws

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/renameio/v2"

	"poolkeeper/providers"
)

// blocks is what a snapshot holds, kept beside the build that it was made of. The file goes with
// the build; without one the whole image is sent.
type blocks struct {
	Image    string // its name, not that of the build
	Snapshot string
	Volume   int64 // GiB
	Sums     [][sha256.Size]byte
}

// blocksEnding ends the name of the file, which begins as the build's files do.
func (p *Provider) blocksEnding() string { return ".ebs-" + p.cfg.Name + "-" + p.cfg.Region }

// keptBlocks is how blocks are written: sums as one text.
type keptBlocks struct {
	Image, Snapshot string
	Volume          int64
	Sums            []byte
}

// keepBlocks notes what a snapshot holds. Without the note the next upload is larger, no more.
func (p *Provider) keepBlocks(up providers.ImageUpload, b *blocks) {
	kept := keptBlocks{Image: up.Metadata[providers.MetaImage], Snapshot: b.Snapshot, Volume: b.Volume}
	if kept.Image == "" {
		return
	}
	for _, sum := range b.Sums {
		kept.Sums = append(kept.Sums, sum[:]...)
	}
	data, err := json.Marshal(kept)
	if err == nil {
		err = renameio.WriteFile(up.Path+p.blocksEnding(), data, 0o600)
	}
	if err != nil {
		p.log.Info("What was uploaded cannot be noted, the next upload sends all of the image", "provider", p.cfg.Name, "image", kept.Image, "error", err)
	}
}

// lastBlocks finds the last upload of the image whose snapshot is there still, and can be the
// parent of one of a size. It is empty where there is none.
func (p *Provider) lastBlocks(ctx context.Context, up providers.ImageUpload, size int64) *blocks {
	image := up.Metadata[providers.MetaImage]
	files, _ := filepath.Glob(filepath.Join(quoted(filepath.Dir(up.Path)), "*"+quoted(p.blocksEnding())))
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(b, a) }) // builds count upwards
	for _, file := range files {
		b := readBlocks(file)
		if image == "" || b.Image != image || b.Volume > size || b.Snapshot == "" {
			continue
		}
		found, err := p.account.ec2.DescribeSnapshots(ctx, &ec2.DescribeSnapshotsInput{SnapshotIds: []string{b.Snapshot}})
		if err == nil && len(found.Snapshots) == 1 && found.Snapshots[0].State == types.SnapshotStateCompleted {
			return b
		}
	}
	return &blocks{}
}

// quoted has a name mean nothing to Glob but itself.
func quoted(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// readBlocks reads a note. One that cannot be read is empty.
func readBlocks(path string) *blocks {
	var kept keptBlocks
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &kept) != nil || len(kept.Sums)%sha256.Size != 0 {
		return &blocks{}
	}
	b := &blocks{Image: kept.Image, Snapshot: kept.Snapshot, Volume: kept.Volume}
	for sum := range slices.Chunk(kept.Sums, sha256.Size) {
		b.Sums = append(b.Sums, [sha256.Size]byte(sum))
	}
	return b
}
