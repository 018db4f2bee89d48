package disk

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
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
