package configs

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// signerPrefix begins the public half of a key that signs configurations.
const signerPrefix = "ed25519:"

// ErrSigner says that a text is not the public half of a key that signs configurations.
var ErrSigner = errors.New("not a public key as `poolkeeper config keygen` prints it")

// SignerText is the public half of a key as files have it.
func SignerText(key ed25519.PublicKey) string {
	return signerPrefix + base64.StdEncoding.EncodeToString(key)
}

// ParseSigner is the inverse of SignerText. The error is ErrSigner, and quotes nothing:
// the text may be the private half.
func ParseSigner(text string) (ed25519.PublicKey, error) {
	rest, ok := strings.CutPrefix(text, signerPrefix)
	key, err := base64.StdEncoding.Strict().DecodeString(rest)
	if !ok || err != nil || len(key) != ed25519.PublicKeySize {
		return nil, ErrSigner
	}
	return key, nil
}

// signers decodes the public keys of those who may push a configuration.
func signers(out *[]ed25519.PublicKey) decodeFunc {
	return func(v value) {
		*out = []ed25519.PublicKey{}
		for i, item := range v.items() {
			text, ok := item.text()
			if !ok {
				continue
			}
			key, err := ParseSigner(text)
			if err != nil {
				item.fail("item %d is %v", i+1, err)
				continue
			}
			*out = append(*out, key)
		}
	}
}

// Signers reads from a secure file who may push a configuration; nil when it does not say.
//
// Errors: those of the file, or a *Finding.
func Signers(secure string) ([]ed25519.PublicKey, error) {
	l := newLoader(Options{SecurePath: secure})
	content, err := l.read(secure)
	if err != nil {
		return nil, fmt.Errorf("read secure file: %w", err)
	}
	if root, ok := (&source{load: l, file: secure, secret: true}).parse(content); ok {
		root.decode("signers", fields{"config-signers": signers(&l.cfg.ConfigSigners)})
	}
	if err := l.found.err(); err != nil {
		return nil, err
	}
	return l.cfg.ConfigSigners, nil
}
