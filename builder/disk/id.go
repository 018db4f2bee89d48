package disk

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
)

// idFile has Nodepool's name.
const idFile = "builder_id.txt"

// BuilderID is what Nodepool keeps in builder_id.txt: a UUID that names the
// owner of the folder in build records. It is made when it is missing.
func (d *Images) BuilderID() (string, error) {
	file := filepath.Join(d.dir, idFile)
	text, err := os.ReadFile(file)
	if id := strings.TrimSpace(string(text)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read builder id: %w", err)
	}
	id := newUUID()
	if err := renameio.WriteFile(file, []byte(id), 0o644, renameio.WithTempDir(filepath.Join(d.dir, ownDir))); err != nil {
		return "", fmt.Errorf("write builder id: %w", err)
	}
	return id, nil
}

// newUUID is a random (version 4) UUID.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// numbersFile has the newest number of a build that was ever seen, of each image: ZooKeeper may go
// back in time, to a snapshot, and would give numbers again that files, logs and images in clouds
// have.
const numbersFile = "numbers.json"

// Seen notes the number of a build, whose ever it is. Numbers that are no ZooKeeper's are not
// noted.
func (d *Images) Seen(n Name) error {
	if len(n.ID) != 10 || strings.Trim(n.ID, "0123456789") != "" {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n.ID <= d.newest(n.Image) {
		return nil
	}
	numbers := maps.Clone(d.numbers)
	numbers[n.Image] = n.ID
	data, err := json.Marshal(numbers)
	if err == nil {
		err = replaceFile(filepath.Join(d.dir, ownDir, numbersFile), data)
	}
	if err != nil {
		return fmt.Errorf("note number of build %s: %w", n, err)
	}
	d.numbers = numbers
	return nil
}

// Newest is the highest number that Seen was ever told of an image, by this process or those before
// it; "" is none.
func (d *Images) Newest(image string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.newest(image)
}

// newest is called with the mutex held. A file that cannot be read is begun anew.
func (d *Images) newest(image string) string {
	if d.numbers == nil {
		data, err := os.ReadFile(filepath.Join(d.dir, ownDir, numbersFile))
		if err != nil || json.Unmarshal(data, &d.numbers) != nil || d.numbers == nil {
			d.numbers = map[string]string{}
		}
	}
	return d.numbers[image]
}
