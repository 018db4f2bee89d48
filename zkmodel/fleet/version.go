package fleet

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel/recipe"
)

// Why a version is not taken.
var (
	// ErrUnsigned: no key that may push has signed it, or it was altered since.
	ErrUnsigned = errors.New("not signed by a key of config-signers")
	// ErrOlder: it is not newer than the one that runs.
	ErrOlder = errors.New("not newer than the version that runs")
	// ErrFork: it says that it follows another version than the one that runs.
	ErrFork = errors.New("not the successor of the version that runs")
	// ErrJump: its number is further after that of the one that runs than any host can be behind.
	ErrJump = errors.New("numbered too far after the version that runs")
	// ErrUndecodable: the record of the version cannot be read.
	ErrUndecodable = errors.New("the record of the version cannot be decoded")
	// ErrNone: nobody has pushed a configuration.
	ErrNone = errors.New("no configuration has been pushed")
)

// Source is what -c names instead of a file for the configuration of the fleet.
const Source = "zk:"

// Version is one configuration that was pushed, without its text.
type Version struct {
	// Number counts versions up, from 1.
	Number uint64 `json:"number"`
	// Predecessor is the ID of the version before; "" of the first.
	Predecessor string `json:"predecessor"`
	// Digest is the SHA-256 of the text in hex, and Size its length in bytes.
	Digest string `json:"digest"`
	Size   int    `json:"size"`
	// Time is when it was pushed, in seconds since 1970, by the pusher's clock.
	Time int64 `json:"time"`
	// By is who pushed it, as USER@HOST, and Message what he says of it.
	By      string `json:"by"`
	Message string `json:"message,omitempty"`
	// Of is the version whose text it has again; 0 when it is no rollback.
	Of uint64 `json:"of,omitempty"`
	// Signer is the public half of the key that signed all this.
	Signer    string `json:"signer"`
	Signature []byte `json:"signature"`
	// Blob and Shards say where the text is. They are not signed: the digest tells
	// whether it is the right one.
	Blob   string `json:"blob"`
	Shards int    `json:"shards"`
}

// statement is what is signed: all that a version says, in one way of writing.
func (v *Version) statement() []byte {
	return fmt.Appendf(nil, "poolkeeper fleet configuration v1\nnumber %d\npredecessor %q\ndigest %q\nsize %d\ntime %d\nby %q\nmessage %q\nof %d\n",
		v.Number, v.Predecessor, v.Digest, v.Size, v.Time, v.By, v.Message, v.Of)
}

// ID identifies the version among all: two that were pushed with the same number differ.
func (v *Version) ID() string { return recipe.BlobDigest(v.statement()) }

// Name is how messages call the version, as if it were a file.
func (v *Version) Name() string { return fmt.Sprintf("%sversion-%d", Source, v.Number) }

// When is the time of the push.
func (v *Version) When() time.Time { return time.Unix(v.Time, 0) }

// Verify returns nil when one of the signers has signed the version as it is, else
// ErrUnsigned.
func (v *Version) Verify(signers []ed25519.PublicKey) error {
	for _, key := range signers {
		if ed25519.Verify(key, v.statement(), v.Signature) {
			if v.Signer != configs.SignerText(key) {
				break // who it names has not signed it
			}
			return nil
		}
	}
	if len(signers) == 0 {
		return fmt.Errorf("version %d: %w: the secure file (-s) lists none", v.Number, ErrUnsigned)
	}
	return fmt.Errorf("version %d: %w", v.Number, ErrUnsigned)
}

// MaxJump is by how much the number of a version may be higher than that of the one that runs:
// numbers that are used up by a mistake are gone for ever, and there are 10 digits.
const MaxJump = 1_000_000

// Follows returns nil when the version may run after another: it has a higher number, by
// MaxJump at most, and the next number only with the other as its predecessor. running is nil
// when nothing runs.
//
// Errors: ErrOlder, ErrFork, ErrJump.
func (v *Version) Follows(running *Version) error {
	switch {
	case running == nil:
		return nil
	case v.Number <= running.Number:
		return fmt.Errorf("version %d: %w, %d", v.Number, ErrOlder, running.Number)
	case v.Number == running.Number+1 && v.Predecessor != running.ID():
		return fmt.Errorf("version %d: %w, %d", v.Number, ErrFork, running.Number)
	case v.Number > running.Number+MaxJump:
		return fmt.Errorf("version %d: %w, %d", v.Number, ErrJump, running.Number)
	}
	return nil
}

// location is where the text is, with the digest and size that are signed.
func (v *Version) location() recipe.Blob {
	return recipe.Blob{ID: v.Blob, Shards: v.Shards, Size: v.Size, Digest: v.Digest}
}

// encode is the record as it goes into the znode.
func (v *Version) encode() ([]byte, error) { return json.Marshal(v) }

// decode reads a record. What has other keys, or anything behind it, is not ours.
func decode(data []byte) (*Version, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	v := &Version{}
	if err := d.Decode(v); err != nil || v.Number == 0 || v.Number > MaxNumber {
		return nil, ErrUndecodable
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, ErrUndecodable
	}
	return v, nil
}

// signerShort is how a key is shown in a table.
func signerShort(text string) string {
	key, err := configs.ParseSigner(text)
	if err != nil {
		return "?"
	}
	return base64.StdEncoding.EncodeToString(key)[:12]
}

// ShownSigner is enough of the signer's key to tell it from others.
func (v *Version) ShownSigner() string { return signerShort(v.Signer) }

// Digest is the digest that a version with this text has.
func Digest(text []byte) string { return recipe.BlobDigest(text) }
