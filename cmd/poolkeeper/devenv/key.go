package devenv

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"golang.org/x/crypto/ssh"
)

// keyComment names the key's origin in authorized_keys.
const keyComment = "poolkeeper-dev"

// ensureKey makes an SSH key pair, file and file.pub, unless there is one. The
// public half is written again if it is gone.
func ensureKey(file string) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = newKey(file)
	}
	if err != nil {
		return fmt.Errorf("make operator's key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return fmt.Errorf("read operator's key %s: %w", file, err)
	}
	line := ssh.MarshalAuthorizedKey(signer.PublicKey())
	line = append(line[:len(line)-1], " "+keyComment+"\n"...)
	if err := renameio.WriteFile(file+".pub", line, 0o644, renameio.WithTempDir(filepath.Dir(file))); err != nil {
		return fmt.Errorf("write operator's key: %w", err)
	}
	return nil
}

// newKey makes a private key, readable by its owner only, as OpenSSH wants it.
func newKey(file string) ([]byte, error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, keyComment)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(block)
	return text, renameio.WriteFile(file, text, 0o600, renameio.WithTempDir(filepath.Dir(file)))
}
