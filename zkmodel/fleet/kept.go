package fleet

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"poolkeeper/configs/kit"
	"poolkeeper/configs/sealed"
	"poolkeeper/zkmodel/recipe"
)

// Kept is a version with its text.
type Kept struct {
	Version *Version `json:"version"`
	Text    []byte   `json:"text"`
}

// Save writes a version into a file for its owner alone, at once or not at all. The folder
// is made when it is missing.
func (k *Kept) Save(file string) error {
	data, err := json.Marshal(k)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err == nil {
		err = kit.ReplaceFile(file, data)
	}
	if err != nil {
		return fmt.Errorf("keep version %d: %w", k.Version.Number, err)
	}
	return nil
}

// LoadKept reads a file that Save wrote.
//
// Errors: fs.ErrNotExist; recipe.ErrDamaged where it is not what was written, or open to
// others; ErrUnsigned where a key is no longer among signers; those of the file system. As
// far as the version can be read it comes with the error: what ran is known by it.
func LoadKept(file string, signers []ed25519.PublicKey) (*Kept, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe is not waited for
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w: it is no file", file, recipe.ErrDamaged)
	}
	k := &Kept{}
	if err := json.NewDecoder(f).Decode(k); err != nil || k.Version == nil {
		return nil, fmt.Errorf("%s: %w", file, errors.Join(recipe.ErrDamaged, err))
	}
	if sealed.Open(info.Mode()) {
		return k, fmt.Errorf("%s: %w: it has mode %#o, others may read or write it: chmod 600", file, recipe.ErrDamaged, info.Mode().Perm())
	}
	if len(k.Text) != k.Version.Size || recipe.BlobDigest(k.Text) != k.Version.Digest {
		return k, fmt.Errorf("%s: %w: the text is another", file, recipe.ErrDamaged)
	}
	if err := k.Version.Verify(signers); err != nil {
		return k, fmt.Errorf("%s: %w", file, err)
	}
	return k, nil
}
