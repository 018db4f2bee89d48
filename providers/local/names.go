package local

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// maxID is the longest id, in bytes: a file name holds 255.
const maxID = 128

// safe says whether an id may become a file name. Ids that are not safe cannot
// be of ours.
func safe(id string) bool {
	return id != "" && len(id) <= maxID && !strings.ContainsFunc(id, notInID) && id[0] != '.' && id[0] != '-'
}

func notInID(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return !letter && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
}

// newUUID makes a random UUID (version 4).
func newUUID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b)
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}
