package openstack

import (
	"crypto/md5" // Glance's own sum, not a defence
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"poolkeeper/providers"
)

// verify compares what Glance has stored with what was built: the size, and
// the sum that Glance took itself. An image that an import has converted is
// another file, of which we know nothing.
func verify(image *images.Image, up providers.ImageUpload) error {
	if image.DiskFormat != up.Format {
		return nil
	}
	if image.SizeBytes != up.Size {
		return fmt.Errorf("%w: Glance has %d bytes, %d were built", providers.ErrChecksum, image.SizeBytes, up.Size)
	}
	name, theirs := "md5", image.Checksum
	algorithm, _ := image.Properties["os_hash_algo"].(string)
	value, _ := image.Properties["os_hash_value"].(string)
	if value != "" && (theirs == "" || up.MD5 == "" || algorithm == "sha256" && up.SHA256 != "") {
		name, theirs = algorithm, value
	}
	if theirs == "" {
		return nil // a Glance that keeps no sums
	}
	mine, err := sumOf(name, up)
	if err != nil {
		return err
	}
	if mine != "" && !strings.EqualFold(mine, theirs) {
		return fmt.Errorf("%w: %s in Glance is %s, built was %s", providers.ErrChecksum, name, theirs, mine)
	}
	return nil
}

// sumOf is a sum of the built file: the builder's, or taken now. It is "" for
// an algorithm that we do not have.
func sumOf(name string, up providers.ImageUpload) (string, error) {
	var sum hash.Hash
	switch name {
	case "md5":
		if up.MD5 != "" {
			return up.MD5, nil
		}
		sum = md5.New()
	case "sha256":
		if up.SHA256 != "" {
			return up.SHA256, nil
		}
		sum = sha256.New()
	case "sha512":
		sum = sha512.New()
	default:
		return "", nil
	}
	file, err := os.Open(up.Path)
	if err != nil {
		return "", fmt.Errorf("take %s: %w", name, err)
	}
	defer file.Close() //nolint:errcheck // only read
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("take %s: %w", name, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// newUUID is a random id (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
