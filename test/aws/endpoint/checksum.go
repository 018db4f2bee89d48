package endpoint

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"hash/crc32"
	"net/http"
	"strings"
)

// checksum holds a body against what its headers say of it.
func checksum(r *http.Request, body []byte) error {
	if r.Method == http.MethodPost && r.URL.Query().Has("uploadId") {
		return nil // of all parts together
	}
	for name, h := range map[string]hash.Hash{
		"Content-Md5": md5.New(), "X-Amz-Checksum-Crc32": crc32.NewIEEE(), "X-Amz-Checksum-Crc32c": crc32.New(crc32.MakeTable(crc32.Castagnoli)),
		"X-Amz-Checksum-Sha1": sha1.New(), "X-Amz-Checksum-Sha256": sha256.New(),
	} {
		want := r.Header.Get(name)
		if want == "" {
			continue
		}
		h.Write(body)
		if got := base64.StdEncoding.EncodeToString(h.Sum(nil)); got != want {
			return fault("BadDigest", "The %s you specified did not match the calculated checksum.", strings.ToLower(name))
		}
	}
	return nil
}
