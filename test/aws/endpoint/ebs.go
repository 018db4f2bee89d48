package endpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// blockSize is that of EBS direct.
const blockSize = 512 << 10

var ebsHandlers = map[string]handler{
	"StartSnapshot": (*call).startSnapshot, "PutSnapshotBlock": (*call).putSnapshotBlock, "CompleteSnapshot": (*call).completeSnapshot,
	"ListSnapshotBlocks": (*call).listSnapshotBlocks, "ListChangedBlocks": (*call).listChangedBlocks, "GetSnapshotBlock": (*call).getSnapshotBlock,
}

func (c *call) startSnapshot() (Doc, error) {
	if result, err := c.again(c.in.Str("ClientToken")); result != nil || err != nil {
		if err != nil {
			err = fault("ConflictException", "The client token was used with other parameters")
		}
		return result, err
	}
	tags, err := tagsOf(c.in.Docs("Tags"))
	if err != nil {
		return nil, fault("ValidationException", "%v", err)
	}
	doc := Doc{
		"OwnerId": c.e.Account, "State": "pending", "Progress": "0%", "VolumeSize": c.in.Int("VolumeSize"), "StartTime": c.now,
		"Encrypted": c.w.encrypt || c.in.Bool("Encrypted"), "Description": c.in.Str("Description"), "VolumeId": "vol-ffffffff",
	}
	result := Doc{"Status": "pending", "OwnerId": c.e.Account, "StartTime": c.now, "VolumeSize": c.in.Int("VolumeSize"), "BlockSize": blockSize}
	blocks := map[int64][]byte{}
	if id := c.in.Str("ParentSnapshotId"); id != "" {
		parent := c.get("snapshot", id)
		if parent == nil || parent.State() != "completed" {
			return nil, fault("ResourceNotFoundException", "The snapshot %s does not exist, or is not complete", id)
		}
		if c.in.Has("Encrypted") || c.in.Has("KmsKeyArn") {
			return nil, fault("ValidationException", "Encrypted and KmsKeyArn cannot be given with ParentSnapshotId")
		}
		if c.w.encrypt && !parent.Doc.Bool("Encrypted") {
			return nil, fault("ValidationException", "The parent snapshot is not encrypted, and this account encrypts by default")
		}
		if c.in.Int("VolumeSize") < number(parent.Doc["VolumeSize"]) {
			return nil, fault("ValidationException", "VolumeSize is less than that of the parent snapshot")
		}
		doc["Encrypted"], result["ParentSnapshotId"] = parent.Doc["Encrypted"], id
		maps.Copy(blocks, parent.blocks)
	}
	t := c.w.add(c.now, "snapshot", c.w.id("snap-"), tags, doc)
	t.blocks, t.written = blocks, map[int64][sha256.Size]byte{}
	result["SnapshotId"] = t.ID
	if doc.Bool("Encrypted") {
		result["KmsKeyArn"] = "arn:aws:kms:" + c.e.Region + ":" + c.e.Account + ":key/00000000-0000-4000-8000-000000000000"
	}
	if len(tags) > 0 {
		result["Tags"] = tagList(tags)
	}
	c.remember(c.in.Str("ClientToken"), result)
	return result, nil
}

// writable is a snapshot that is being written. EBS direct sees at once what it made itself.
func (c *call) writable() (*Thing, error) {
	t := c.w.things[c.in.Str("SnapshotId")]
	if t == nil || t.Kind != "snapshot" || !t.gone.IsZero() {
		return nil, fault("ResourceNotFoundException", "The snapshot %s does not exist", c.in.Str("SnapshotId"))
	}
	if t.State() != "pending" || t.written == nil {
		return nil, fault("ValidationException", "The snapshot %s is not pending", t.ID)
	}
	return t, nil
}

// An empty volume of a GiB takes no GiB of the endpoint: all its blocks are this one, which nobody changes.
var (
	zeros   = make([]byte, blockSize)
	zeroSum = sha256.Sum256(zeros)
)

func (c *call) putSnapshotBlock() (Doc, error) {
	t, err := c.writable()
	if err != nil {
		return nil, err
	}
	data, index := c.in.Bytes("BlockData"), c.in.Int("BlockIndex")
	sum := sha256.Sum256(data)
	checksum := base64.StdEncoding.EncodeToString(sum[:])
	switch {
	case c.in.Int("DataLength") != blockSize || len(data) != blockSize:
		return nil, fault("ValidationException", "A block has %d bytes, not %d", blockSize, len(data))
	case c.in.Str("Checksum") != checksum:
		return nil, fault("ValidationException", "The checksum is not that of the block: InvalidBlockChecksum")
	case index >= number(t.Doc["VolumeSize"])<<30/blockSize:
		return nil, fault("ValidationException", "The block %d is beyond the volume", index)
	}
	t.blocks[index], t.written[index] = zeros, sum
	if sum != zeroSum {
		t.blocks[index] = bytes.Clone(data)
	}
	return Doc{"Checksum": checksum, "ChecksumAlgorithm": "SHA256"}, nil
}

func (c *call) completeSnapshot() (Doc, error) {
	t, err := c.writable()
	if err != nil {
		return nil, err
	}
	if n := c.in.Int("ChangedBlocksCount"); n != int64(len(t.written)) {
		return nil, fault("ValidationException", "%d blocks were written, not %d", len(t.written), n)
	}
	if want := c.in.Str("Checksum"); want != "" {
		all := sha256.New()
		for _, index := range slices.Sorted(maps.Keys(t.written)) {
			sum := t.written[index]
			all.Write(sum[:])
		}
		if got := base64.StdEncoding.EncodeToString(all.Sum(nil)); got != want {
			return nil, fault("ValidationException", "The checksum is not that of the checksums of the blocks")
		}
	}
	t.written = nil
	c.w.after(c.now, c.e.options.Pace, func() { t.Doc["State"], t.Doc["Progress"] = "completed", "100%" })
	return Doc{"Status": "pending"}, nil
}

// readable is a complete snapshot.
func (c *call) readable(member string) (*Thing, error) {
	t := c.get("snapshot", c.in.Str(member))
	if t == nil || t.State() != "completed" {
		return nil, fault("ResourceNotFoundException", "The snapshot %s does not exist, or is not complete", c.in.Str(member))
	}
	return t, nil
}

func blockToken(t *Thing, index int64) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s.%d", t.ID, index))
}

func (c *call) listSnapshotBlocks() (Doc, error) {
	t, err := c.readable("SnapshotId")
	if err != nil {
		return nil, err
	}
	var docs []Doc
	for _, index := range slices.Sorted(maps.Keys(t.blocks)) {
		if index >= c.in.Int("StartingBlockIndex") {
			docs = append(docs, Doc{"BlockIndex": index, "BlockToken": blockToken(t, index)})
		}
	}
	return c.blockPage("Blocks", t, docs)
}

func (c *call) blockPage(member string, t *Thing, docs []Doc) (Doc, error) {
	result, err := c.page(member, docs)
	if err != nil {
		return nil, fault("ValidationException", "%v", err)
	}
	result["VolumeSize"], result["BlockSize"], result["ExpiryTime"] = t.Doc["VolumeSize"], blockSize, c.now.AddDate(0, 0, 7)
	return result, nil
}

func (c *call) listChangedBlocks() (Doc, error) {
	second, err := c.readable("SecondSnapshotId")
	if err != nil {
		return nil, err
	}
	first := &Thing{}
	if c.in.Has("FirstSnapshotId") {
		if first, err = c.readable("FirstSnapshotId"); err != nil {
			return nil, err
		}
	}
	all := maps.Clone(second.blocks)
	maps.Copy(all, first.blocks)
	var docs []Doc
	for _, index := range slices.Sorted(maps.Keys(all)) {
		if index < c.in.Int("StartingBlockIndex") || bytes.Equal(first.blocks[index], second.blocks[index]) {
			continue
		}
		doc := Doc{"BlockIndex": index}
		if first.blocks[index] != nil {
			doc["FirstBlockToken"] = blockToken(first, index)
		}
		if second.blocks[index] != nil {
			doc["SecondBlockToken"] = blockToken(second, index)
		}
		docs = append(docs, doc)
	}
	return c.blockPage("ChangedBlocks", second, docs)
}

func (c *call) getSnapshotBlock() (Doc, error) {
	t, err := c.readable("SnapshotId")
	if err != nil {
		return nil, err
	}
	index := c.in.Int("BlockIndex")
	data := t.blocks[index]
	if data == nil || !strings.EqualFold(c.in.Str("BlockToken"), blockToken(t, index)) {
		return nil, fault("ValidationException", "There is no block %d with this token", index)
	}
	data = append(bytes.Clone(data), make([]byte, blockSize-len(data))...)
	sum := sha256.Sum256(data)
	return Doc{
		"DataLength": blockSize, "BlockData": data, "Checksum": base64.StdEncoding.EncodeToString(sum[:]), "ChecksumAlgorithm": "SHA256",
	}, nil
}
