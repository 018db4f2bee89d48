package fleet

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"poolkeeper/configs"
	"poolkeeper/configs/sealed"
)

// keyPrefix begins the line of a key file that holds the key.
const keyPrefix = "POOLKEEPER-CONFIG-KEY:"

// ErrKeyFile says that a key file cannot be used.
var ErrKeyFile = sealed.ErrKeyFile

// Key signs versions. It shows nowhere.
type Key struct{ private ed25519.PrivateKey }

// NewKey makes a key and a file for it, which must not be there yet.
func NewKey(file string) (*Key, error) {
	sealed.NoCoreDumps()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	k := &Key{private}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make key file: %w", err)
	}
	_, err = fmt.Fprintf(f, "# public key: %s\n%s%s\n", k.Public(), keyPrefix, base64.StdEncoding.EncodeToString(private.Seed()))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("write key file: %w", err), os.Remove(file))
	}
	return k, nil
}

// ReadKey reads a key file, which must be closed to all but its owner.
//
// Errors: ErrKeyFile, with the file and why; fs.ErrNotExist.
func ReadKey(file string) (*Key, error) {
	sealed.NoCoreDumps()
	text, err := sealed.ReadClosed(file)
	if err != nil {
		return nil, err
	}
	var found *Key
	for line := range bytes.Lines(text) {
		one := strings.TrimSpace(string(line))
		if one == "" || one[0] == '#' {
			continue
		}
		rest, ok := strings.CutPrefix(one, keyPrefix)
		seed, err := base64.StdEncoding.Strict().DecodeString(rest)
		if !ok || err != nil || len(seed) != ed25519.SeedSize || found != nil {
			found = nil
			break
		}
		found = &Key{ed25519.NewKeyFromSeed(seed)}
	}
	if found == nil { // its words quote nothing of it
		return nil, fmt.Errorf("%w: %s does not hold one key as `poolkeeper config keygen` makes it", ErrKeyFile, file)
	}
	return found, nil
}

// Public is the public half, as the secure file lists it.
func (k *Key) Public() string { return configs.SignerText(k.public()) }

func (k *Key) public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) } //nolint:forcetypeassert // crypto/ed25519

// String is the public half, so that nothing shows the other.
func (k *Key) String() string { return k.Public() }

// GoString is String, so that %#v shows no key either.
func (k *Key) GoString() string { return k.String() }

// sign signs what a version says.
func (k *Key) sign(v *Version) {
	v.Signer = k.Public()
	v.Signature = ed25519.Sign(k.private, v.statement())
}
