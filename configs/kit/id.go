package kit

import (
	"crypto/rand"
	"encoding/hex"
)

// RandomHex is a text of 2n hexadecimal digits, from n random bytes.
func RandomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails (crypto/rand since Go 1.24)
	return hex.EncodeToString(b)
}
