package node

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"poolkeeper/launcher/bootable"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// suspectAfter is how many boots in a row must fail before an older build is
// tried instead. When that one boots, the newer one is to blame and is marked
// suspect in its record, for all launchers and for people to see.
const suspectAfter = 3

// Boots counts the boots in a row that failed, by the path of the upload.
type Boots struct {
	mu     sync.Mutex
	failed map[string]int
}

// NewBoots makes one that counts none.
func NewBoots() *Boots { return &Boots{failed: map[string]int{}} }

// Note takes the outcome of a boot over. It is no outcome when the image had no
// part in it.
func (b *Boots) Note(path string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		delete(b.failed, path)
	case errors.Is(err, providers.ErrNodeFailed), errors.Is(err, ErrKeyScan), errors.Is(err, context.DeadlineExceeded):
		b.failed[path]++
	}
}

// missing notes that the cloud does not have an upload: it need not be tried
// again.
func (b *Boots) missing(path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed[path] = suspectAfter
}

// count is how many boots in a row have failed.
func (b *Boots) count(path string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed[path]
}

// Uploads are those in the tree.
type Uploads interface {
	// Image is one image with its builds and uploads.
	Image(name string) *zkmodel.Image
	// Mark has it written into an upload, soon, why it is suspect.
	Mark(key zkmodel.UploadKey, why string)
	// Clear has it written into an upload, soon, that it is not suspect.
	Clear(key zkmodel.UploadKey)
}

// Trust says which upload of an image nodes boot from. It learns from their boots.
type Trust struct {
	Boots   *Boots
	Uploads Uploads
}

// doubted reports whether nodes should rather boot from an older build.
func (t Trust) doubted(u *zkmodel.Upload) bool {
	return u.Suspect != "" || t.Boots.count(u.Path()) >= suspectAfter
}

// Choose is the newest upload of an image in a provider that nobody has reason to
// doubt, or the newest; nil when none is ready.
func (t Trust) Choose(image, provider string) *zkmodel.Upload {
	return bootable.Trusted([]*zkmodel.Image{t.Uploads.Image(image)}, image, provider, t.doubted)
}

// Other reports whether Choose would give another upload in a provider than the one
// with this path.
func (t Trust) Other(path, provider string) bool {
	key, err := zkmodel.ParseUploadPath(path)
	if err != nil {
		return false // a cloud image
	}
	next := t.Choose(key.Image, provider)
	return next != nil && next.UploadKey != key
}

// Booted notes that a node has booted from an upload. What is newer and would not
// boot is suspect then; what was suspect and boots is not.
func (t Trust) Booted(path string) {
	t.Boots.Note(path, nil)
	key, err := zkmodel.ParseUploadPath(path)
	if err != nil {
		return // a cloud image
	}
	images := []*zkmodel.Image{t.Uploads.Image(key.Image)}
	if zkmodel.VerdictOn(images, path) != nil {
		return // its build is not to serve any more: that it boots says nothing of others
	}
	for u := range bootable.Ready(images, key.Image, key.Provider) {
		switch failed := t.Boots.count(u.Path()) >= suspectAfter; {
		case u.UploadKey == key:
			if u.Suspect != "" {
				t.Uploads.Clear(key)
			}
			return
		case failed && u.Suspect == "":
			t.Uploads.Mark(u.UploadKey, fmt.Sprintf("suspect: failed to boot %d times in a row, while build %s boots", suspectAfter, key.Build))
		}
	}
}

// Withdrawn says what people said of the build of an upload, when that is not to serve any
// more in a provider, and another one serves there; "" otherwise.
func (t Trust) Withdrawn(path, provider string) string {
	key, err := zkmodel.ParseUploadPath(path)
	if err != nil {
		return "" // a cloud image
	}
	v := zkmodel.VerdictOn([]*zkmodel.Image{t.Uploads.Image(key.Image)}, path)
	if v == nil || !t.Other(path, provider) {
		return ""
	}
	return v.Text()
}

// Missing notes that the cloud does not have an upload that its record says
// is ready. The mark tells all launchers, and the builder, which looks itself.
func (t Trust) Missing(path string) {
	key, err := zkmodel.ParseUploadPath(path)
	if err != nil {
		return // a cloud image
	}
	t.Boots.missing(path)
	t.Uploads.Mark(key, "suspect: the cloud says that it does not have it")
}
