package sealed

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"filippo.io/age"
)

// maxValue is the longest value that can be sealed, in bytes.
const maxValue = 256 << 10

// padding is what the length of a sealed value is a multiple of, so that it does not tell
// that of a password.
const padding = 64

var (
	begin = regexp.MustCompile(`^sealed:v[0-9]+:`)
	form  = regexp.MustCompile(`^sealed:v1:(age1[a-z0-9]{58}):([A-Za-z0-9_-]+)$`)
)

// letter is what is encrypted: the value, and the place that it is for.
type letter struct {
	For   string `json:"for"`
	Value string `json:"value"`
	// Unchanged is since when the value is known to holders of an older key, in seconds since
	// 1970: it was sealed anew, and is the same. 0 is never.
	Unchanged int64 `json:"unchanged,omitempty"`
}

// Is reports whether a text is sealed, in whatever version and shape.
func Is(text string) bool { return strings.HasPrefix(text, "sealed:v") && begin.MatchString(text) }

// Recipient is the public key that a text is sealed to; "" for a text that is damaged or of
// a version that we do not know.
func Recipient(text string) string {
	if m := form.FindStringSubmatch(compact(text)); m != nil {
		return m[1]
	}
	return ""
}

// CheckRecipient says what is wrong with a public key.
//
// Errors: ErrValue.
func CheckRecipient(recipient string) error {
	if _, err := age.ParseX25519Recipient(recipient); err != nil {
		return fmt.Errorf("%w: %q is no public key as age1…", ErrValue, recipient)
	}
	return nil
}

// Seal encrypts a value to a public key, for one place: a path of yamltext. The result is one
// word, which YAML and JSON take without quotes and escapes.
//
// Errors: ErrValue.
func Seal(recipient, place, value string) (string, error) {
	return encrypt(recipient, letter{For: place, Value: value})
}

// Reseal is the sealed text that stands at a place for another public key. The value is the
// same, and remains known to those who have the old key and the old text: that is noted within,
// with the time of the first Reseal since it was sealed, for Unchanged.
//
// Errors: those of Open and Seal.
func (k *Keys) Reseal(recipient, text, place string, now time.Time) (string, error) {
	l, err := k.read(text, place)
	if err != nil {
		return "", err
	}
	if l.Unchanged == 0 {
		l.Unchanged = now.Unix()
	}
	return encrypt(recipient, l)
}

// Unchanged tells since when the value of a sealed text has been sealed anew without being
// changed; false where it is as it was set.
//
// Errors: those of Open.
func (k *Keys) Unchanged(text, place string) (time.Time, bool, error) {
	l, err := k.read(text, place)
	return time.Unix(l.Unchanged, 0), l.Unchanged != 0, err
}

func encrypt(recipient string, l letter) (string, error) {
	to, err := age.ParseX25519Recipient(recipient)
	switch {
	case err != nil:
		return "", CheckRecipient(recipient)
	case l.Value == "":
		return "", fmt.Errorf("%w: the value is empty", ErrValue)
	case len(l.Value) > maxValue:
		return "", fmt.Errorf("%w: the value has more than %d KiB", ErrValue, maxValue>>10)
	case !utf8.ValidString(l.Value) || strings.ContainsRune(l.Value, 0):
		return "", fmt.Errorf("%w: the value is no text in UTF-8", ErrValue)
	}
	plain, err := json.Marshal(l)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrValue, err)
	}
	plain = append(plain, bytes.Repeat([]byte{' '}, padding-len(plain)%padding)...)
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrValue, err)
	}
	return "sealed:v1:" + recipient + ":" + base64.RawURLEncoding.EncodeToString(out.Bytes()), nil
}

// Open is the value of a sealed text that stands at a place.
//
// Errors: ErrNoKey, ErrKeyFile and ErrElsewhere, ErrDamaged. None holds the value.
func (k *Keys) Open(text, place string) (string, error) {
	l, err := k.read(text, place)
	return l.Value, err
}

// read is Open with all that is sealed.
func (k *Keys) read(text, place string) (letter, error) {
	m := form.FindStringSubmatch(compact(text))
	switch {
	case m == nil && !strings.HasPrefix(text, "sealed:v1:"):
		return letter{}, fmt.Errorf("%w: it is sealed in a way that this version does not know", ErrDamaged)
	case m == nil:
		return letter{}, fmt.Errorf("%w: it is not the whole of a sealed value", ErrDamaged)
	case k == nil:
		return letter{}, fmt.Errorf("%w: the secure file names no secret-key", ErrNoKey)
	case k.fault != nil:
		return letter{}, k.fault
	}
	for _, one := range k.list {
		if one.Recipient().String() == m[1] {
			return open(one, m[2], place)
		}
	}
	return letter{}, fmt.Errorf("%w: it is sealed to %s, which %s does not have", ErrNoKey, m[1], k.file)
}

// open decrypts, and compares the place.
func open(key *age.X25519Identity, body, place string) (letter, error) {
	cipher, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return letter{}, fmt.Errorf("%w: it is not the whole of a sealed value", ErrDamaged)
	}
	r, err := age.Decrypt(bytes.NewReader(cipher), key)
	if err != nil {
		return letter{}, fmt.Errorf("%w: it was changed after it was sealed", ErrDamaged)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return letter{}, fmt.Errorf("%w: it was changed after it was sealed", ErrDamaged)
	}
	var l letter
	if json.Unmarshal(plain, &l) != nil {
		return letter{}, fmt.Errorf("%w: what was sealed is no value of ours", ErrDamaged)
	}
	if l.For != place {
		return letter{}, fmt.Errorf("%w: %s, and opens nowhere else", ErrElsewhere, l.For)
	}
	return l, nil
}

// compact is a text without the blanks that YAML leaves where it was folded.
func compact(text string) string {
	if !strings.ContainsAny(text, " \t\r\n") {
		return text
	}
	return strings.Join(strings.Fields(text), "")
}
