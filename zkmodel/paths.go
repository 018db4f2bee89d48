package zkmodel

import (
	"fmt"
	"path"
	"strings"
)

// Root is where Nodepool and Zuul meet; paths are relative to the chroot.
const (
	Root           = "/nodepool"
	ImagesRoot     = Root + "/images"
	NodesRoot      = Root + "/nodes"
	RequestsRoot   = Root + "/requests"
	LocksRoot      = Root + "/requests-lock"
	ComponentsRoot = Root + "/components"
	// OwnRoot holds what only Poolkeeper knows.
	OwnRoot = "/poolkeeper"
)

// lockName is the one child name that never is a record.
const lockName = "lock"

// ImagePath is the znode of an image.
func ImagePath(image string) string { return ImagesRoot + "/" + image }

// PausePath is the flag that pauses an image's builds.
func PausePath(image string) string { return ImagePath(image) + "/pause" }

// RequestBuildPath is the flag that asks for a build now.
func RequestBuildPath(image string) string { return ImagePath(image) + "/request-build" }

// BuildsPath is the parent of an image's builds.
func BuildsPath(image string) string { return ImagePath(image) + "/builds" }

// BuildsLockPath is held for the whole of a build of the image.
func BuildsLockPath(image string) string { return BuildsPath(image) + "/" + lockName }

// BuildPath is the record of one build.
func BuildPath(image, build string) string { return BuildsPath(image) + "/" + build }

// ProvidersPath is the parent of the providers that have uploads of a build.
func ProvidersPath(image, build string) string { return BuildPath(image, build) + "/providers" }

// UploadsPath is the parent of a build's uploads to one provider.
func UploadsPath(image, build, provider string) string {
	return ProvidersPath(image, build) + "/" + provider + "/images"
}

// UploadsLockPath is held for the whole of an upload.
func UploadsLockPath(image, build, provider string) string {
	return UploadsPath(image, build, provider) + "/" + lockName
}

// UploadPath is the record of one upload; a node's image_id is such a path.
func UploadPath(image, build, provider, upload string) string {
	return UploadsPath(image, build, provider) + "/" + upload
}

// NodePath is the record of one node.
func NodePath(id string) string { return NodesRoot + "/" + id }

// RequestPath is the record of one node request.
func RequestPath(id string) string { return RequestsRoot + "/" + id }

// RequestLockPath is the lock of one node request; it is no child of the
// request, so that a request can be deleted while a launcher holds it.
func RequestLockPath(id string) string { return LocksRoot + "/" + id }

// LockPath is the lock below a record (a build, an upload or a node).
func LockPath(record string) string { return record + "/" + lockName }

// UploadKey names one upload.
type UploadKey struct {
	Image, Build, Provider, ID string
}

// Path is the record's path.
func (k UploadKey) Path() string { return UploadPath(k.Image, k.Build, k.Provider, k.ID) }

// ParseUploadPath is the inverse of UploadPath.
func ParseUploadPath(p string) (UploadKey, error) {
	below, ours := strings.CutPrefix(p, ImagesRoot+"/")
	parts := strings.Split(below, "/")
	if !ours || len(parts) != 7 || parts[1] != "builds" || parts[3] != "providers" || parts[5] != "images" || path.Clean(p) != p {
		return UploadKey{}, fmt.Errorf("parse upload path %q: want %s", p, UploadPath("IMAGE", "BUILD", "PROVIDER", "ID"))
	}
	return UploadKey{Image: parts[0], Build: parts[2], Provider: parts[4], ID: parts[6]}, nil
}

// WholeID returns the id of a node, request, build or upload with the leading zeros that a user left out: 200-7 is
// 200-0000000007. An id that ends in no number, in a longer one, or in one with some of its zeros, which may be a part of
// another id, stays as it is.
func WholeID(id string) string {
	const digits = 10 // of ZooKeeper's sequential nodes
	at := strings.LastIndexByte(id, '-') + 1
	number := id[at:]
	if number == "" || len(number) >= digits || len(number) > 1 && number[0] == '0' || strings.Trim(number, "0123456789") != "" {
		return id
	}
	return id[:at] + strings.Repeat("0", digits-len(number)) + number
}

// ParseBuildName splits "<image>-<build id>", as the command line shows builds,
// at the last dash. The build id may lack leading zeros.
func ParseBuildName(name string) (image, build string, err error) {
	i := strings.LastIndexByte(name, '-')
	if i <= 0 || i == len(name)-1 || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("parse build %q: want IMAGE-BUILDID, as dib-image-list shows it", name)
	}
	return name[:i], WholeID(name[i+1:]), nil
}
