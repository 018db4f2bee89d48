package endpoint

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/zktest"
)

// snapshot asks EBS direct for a new one, and gives its ID and the answer.
func (c *client) snapshot(t *testing.T, body string) (string, string) {
	t.Helper()
	answer, _ := c.do(t, "POST", "/snapshots", "ebs", body)
	return between(answer, `"SnapshotId":"`, `"`), answer
}

// A hole of an encrypted snapshot is no zeros, and such an account takes no parent that is not encrypted.
func TestEncryptedSnapshots(t *testing.T) {
	t.Parallel()
	e := Start(t, Options{Pace: time.Millisecond})
	c := newClient(e)
	parent, answer := c.snapshot(t, `{"VolumeSize": 1}`)
	if strings.Contains(answer, "KmsKeyArn") {
		t.Error(answer)
	}
	if answer, _ := c.do(t, "POST", "/snapshots/completion/"+parent, "ebs", ""); !strings.Contains(answer, "ChangedBlocksCount") {
		t.Errorf("a count of blocks that is missing: %s", answer)
	}
	e.EncryptByDefault(true)
	id, answer := c.snapshot(t, `{"VolumeSize": 1}`)
	if !strings.Contains(answer, "KmsKeyArn") {
		t.Error(answer)
	}
	e.locked(func() {
		e.world.things[id].blocks[1] = make([]byte, blockSize)
		e.world.things[parent].Doc["State"] = "completed"
	})
	if data := e.SnapshotBytes(id); len(data) != 2*blockSize || data[0] == 0 || bytes.ContainsFunc(data[blockSize:], func(r rune) bool { return r != 0 }) {
		t.Errorf("%d bytes, the first is %d", len(data), data[0])
	}
	if _, answer := c.snapshot(t, `{"VolumeSize": 1, "ParentSnapshotId": "`+parent+`"}`); !strings.Contains(answer, "The parent snapshot is not encrypted") {
		t.Error(answer)
	}
	e.ExpectRefused() // the completion without a count
}

// Imports of the bytes of an object: the snapshot has them, and no tags.
func TestImportedBytes(t *testing.T) {
	t.Parallel()
	e := Start(t, Options{Pace: time.Millisecond})
	c := newClient(e)
	image := strings.Repeat("image", 300<<10)
	if answer, code := c.do(t, "PUT", "/images/a.raw", "s3", image); code != "" {
		t.Fatal(answer)
	}
	if _, code := c.ec2(t, "Action=ImportSnapshot&DiskContainer.Format=raw&DiskContainer.UserBucket.S3Bucket=images&DiskContainer.UserBucket.S3Key=a.raw"); code != "" {
		t.Fatal(code)
	}
	zktest.Eventually(t, func() bool { return len(e.Snapshots()) == 1 }, "it is imported")
	s := e.Snapshots()[0]
	if string(e.SnapshotBytes(s.ID)) != image || len(s.Tags) > 0 || e.SnapshotBlocks(s.ID) != 3 {
		t.Error(s.Tags, strconv.Itoa(e.SnapshotBlocks(s.ID))+" blocks")
	}
}
