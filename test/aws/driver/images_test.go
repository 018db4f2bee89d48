package driver_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/aws"
)

const block = 512 << 10

// upload sends an image, and tells what was sent of it.
func upload(t *testing.T, p *aws.Provider, path string, data []byte) (id string, sent, saved int64) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	id, err := p.UploadImage(within(t), providers.ImageUpload{
		Name: "tiny", Path: path, Format: "raw", Size: int64(len(data)), Verified: true,
		Metadata: map[string]string{providers.MetaImage: "tiny", providers.MetaProvider: "amazon", providers.MetaUpload: "0000000001", providers.MetaSite: "site"},
		Sent:     func(a, b int64) { sent, saved = a, b },
	})
	if err != nil {
		t.Fatalf("UploadImage: %v", err)
	}
	return id, sent, saved
}

// Only what differs is sent, and yet the snapshot holds all of the image: a block that became
// empty, one that changed, and none of a longer image of before.
func TestOnlyWhatDiffersIsSent(t *testing.T) {
	e, p := amazon(t, configs.AWSImportEBSDirect)
	dir := t.TempDir()
	image := bytes.Repeat([]byte{1}, 8*block)
	clear(image[2*block : 4*block])
	first, sent, saved := upload(t, p, filepath.Join(dir, "tiny-0000000001.raw"), image)
	if sent != 6*block || saved != 2*block {
		t.Errorf("of the first are sent %d, saved %d", sent, saved)
	}
	image = image[:7*block-100]
	clear(image[:block])
	image[5*block] = 9
	_, sent, saved = upload(t, p, filepath.Join(dir, "tiny-0000000002.raw"), image)
	if sent != 4*block || saved != int64(len(image))-4*block { // one is empty now, one changed, one ends early, one is gone
		t.Errorf("of the second are sent %d, saved %d", sent, saved)
	}
	var whole []byte
	for _, s := range e.Snapshots() {
		if got := e.SnapshotBytes(s.ID); s.Tags[providers.MetaUpload] != "" && len(got) >= len(image) && got[5*block] == 9 {
			whole = got
		}
	}
	if whole == nil || !bytes.Equal(whole[:len(image)], image) || len(bytes.Trim(whole[len(image):], "\x00")) > 0 {
		t.Error("the second snapshot is not the second image")
	}
	if err := p.DeleteImage(t.Context(), first); err != nil {
		t.Error(err)
	}
}

// Where volumes are encrypted what is not written is not zero. What the parent has is not sent again.
func TestZerosAreSentWhereVolumesAreEncrypted(t *testing.T) {
	e, p := amazon(t, configs.AWSImportEBSDirect)
	e.EncryptByDefault(true)
	dir := t.TempDir()
	if _, sent, _ := upload(t, p, filepath.Join(dir, "tiny-0000000001.raw"), make([]byte, 3*block)); sent != 1<<30 {
		t.Errorf("sent are %d bytes of a volume of 1 GiB", sent)
	}
	if _, sent, _ := upload(t, p, filepath.Join(dir, "tiny-0000000002.raw"), bytes.Repeat([]byte{1}, block)); sent != block {
		t.Errorf("sent are %d bytes of one block that differs", sent)
	}
}

// What was made a moment ago is not shown yet: an upload waits for it.
func TestUploadsOfWhatIsShownLate(t *testing.T) {
	for _, method := range []string{configs.AWSImportSnapshot, configs.AWSImportEBSDirect, configs.AWSImportImage} {
		t.Run(method, func(t *testing.T) {
			e, p := amazon(t, method)
			e.Lag(300 * time.Millisecond)
			id, _, _ := upload(t, p, filepath.Join(t.TempDir(), "tiny-0000000001.raw"), bytes.Repeat([]byte{1}, 2*block))
			if !e.Exists(id) {
				t.Errorf("%s is not there", id)
			}
			e.Lag(0)
			if err := p.DeleteImage(t.Context(), id); err != nil || len(e.Images())+len(e.Snapshots())+len(e.Objects(e.Bucket)) > 0 {
				t.Errorf("left are %v, %v, %v: %v", e.Images(), e.Snapshots(), e.Objects(e.Bucket), err)
			}
		})
	}
}

// The policy of the page allows all that the driver does: each call of these is in it.
func TestPolicyOfThePage(t *testing.T) {
	actions := policy(t)
	e, p := amazon(t, configs.AWSImportSnapshot)
	e.Allow(actions...)
	ctx := within(t)
	for n, at := range [][2]string{{"main", "fleet"}, {"main", "either"}, {"main", "full"}, {"hosts", "host"}} {
		live(t, e, p, spec(e, at[0], at[1], n))
	}
	if _, err := p.Limits(ctx, nil); err != nil {
		t.Error(err)
	}
	if _, err := p.CleanLeaks(ctx, "site"); err != nil {
		t.Error(err)
	}
	for _, method := range []string{configs.AWSImportSnapshot, configs.AWSImportEBSDirect, configs.AWSImportImage} {
		q := open(t, section(e, method))
		if missing, err := q.CheckCloud(ctx); err != nil || len(missing) > 0 {
			t.Errorf("it lacks %v: %v", missing, err)
		}
		id, _, _ := upload(t, q, filepath.Join(t.TempDir(), "tiny-0000000001.raw"), bytes.Repeat([]byte{1}, 2*block))
		if err := q.DeleteImage(ctx, id); err != nil {
			t.Error(err)
		}
		_ = q.Close()
	}
	for _, call := range e.Calls() {
		if !slices.Contains(actions, call) {
			t.Errorf("docs/aws.md does not allow %s", call)
		}
	}
}

// policy are the actions of the policy in docs/aws.md.
func policy(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/aws.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(page)
	if found == nil {
		t.Fatal("docs/aws.md has no policy")
	}
	var p struct{ Statement []struct{ Action []string } }
	if err := json.Unmarshal(found[1], &p); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, s := range p.Statement {
		all = append(all, s.Action...)
	}
	return all
}

// Nothing that we log in with shows in an error.
func TestSecretsShowInNoError(t *testing.T) {
	e, p := amazon(t, configs.AWSImportSnapshot)
	e.Allow("ec2:Nothing")
	_, err := p.ListNodes(t.Context())
	if err == nil || strings.Contains(err.Error(), e.SecretKey) {
		t.Errorf("the error is %v", err)
	}
}

// An answer that is lost on its way costs an upload nothing, whichever it is, and nothing is made twice.
func TestUploadsWhoseAnswersAreLost(t *testing.T) {
	for method, operations := range map[string][]string{
		configs.AWSImportSnapshot: {
			"CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload", "ImportSnapshot", "DescribeImportSnapshotTasks", "CreateTags", "DescribeSnapshots",
			"RegisterImage", "DescribeImages", "DeleteObject",
		},
		configs.AWSImportEBSDirect: {"StartSnapshot", "PutSnapshotBlock", "CompleteSnapshot"},
		configs.AWSImportImage:     {"ImportImage", "DescribeImportImageTasks"},
	} {
		for _, operation := range operations {
			t.Run(method+" "+operation, func(t *testing.T) {
				e, _ := amazon(t, method)
				p := openPatient(t, section(e, method), 10*time.Millisecond)
				defer p.Close() //nolint:errcheck // nothing is written
				e.LoseAnswer(operation, 1)
				id, _, _ := upload(t, p, filepath.Join(t.TempDir(), "tiny-0000000001.raw"), bytes.Repeat([]byte{1}, 2*block))
				if len(e.Images()) != 1 || len(e.Snapshots()) != 1 || len(e.Objects(e.Bucket)) > 0 || e.Images()[0].ID != id {
					t.Errorf("there are the images %v, %d snapshots, objects %v", e.Images(), len(e.Snapshots()), e.Objects(e.Bucket))
				}
			})
		}
	}
}
