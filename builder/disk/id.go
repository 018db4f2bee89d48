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

// highestNumber is the highest that ZooKeeper can give.
const highestNumber = "2147483647"

// isNumber reports whether ZooKeeper can have given an id, and not a hand or another make.
func isNumber(id string) bool {
	return len(id) == len(highestNumber) && strings.Trim(id, "0123456789") == "" && id <= highestNumber
}

// Seen notes the numbers of builds, whose ever they are, at once: a host that sees many images for the first time
// writes one file. Numbers that are no ZooKeeper's are not noted.
func (d *Images) Seen(builds ...Name) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var numbers map[string]string // with those that are new; nil while there are none
	for _, n := range builds {
		newest, err := d.newest(n.Image)
		if err != nil {
			return err
		}
		if !isNumber(n.ID) || n.ID <= newest || n.ID <= numbers[n.Image] {
			continue
		}
		if numbers == nil {
			numbers = maps.Clone(d.numbers)
		}
		numbers[n.Image] = n.ID
	}
	if numbers == nil {
		return nil
	}
	data, err := json.Marshal(numbers)
	if err == nil {
		err = replaceFile(filepath.Join(d.dir, ownDir, numbersFile), data)
	}
	if err != nil {
		return fmt.Errorf("note numbers of builds: %w", err)
	}
	d.numbers = numbers
	return nil
}

// Newest is the highest number that Seen was ever told of an image, by this process or those before
// it; "" is none.
func (d *Images) Newest(image string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.newest(image)
}

// newest is called with the mutex held. A file that says nothing is begun anew; one that cannot be
// read now may say much.
func (d *Images) newest(image string) (string, error) {
	if d.numbers != nil {
		return d.numbers[image], nil
	}
	data, err := os.ReadFile(filepath.Join(d.dir, ownDir, numbersFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read numbers of builds: %w", err)
	}
	var numbers map[string]string
	if err != nil || json.Unmarshal(data, &numbers) != nil || numbers == nil {
		numbers = map[string]string{}
	}
	maps.DeleteFunc(numbers, func(_, id string) bool { return !isNumber(id) })
	d.numbers = numbers
	return d.numbers[image], nil
}
