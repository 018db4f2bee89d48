// Package backup keeps the records of images outside of the tree, in the file of Nodepool's
// export-image-data, and brings them back.
package backup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// ErrFile says that a file is no backup of images, and what of it is wrong.
var ErrFile = errors.New("no backup of images")

// Data are the records of images as they stand in the tree: the path of a znode, and its
// text. A path is that of a flag (pause, request-build), of a build or of an upload.
type Data map[string]string

// kind is what stands at a path of Data.
type kind int

const (
	pause kind = iota
	request
	build
	upload
)

// place is a path of Data, taken apart.
type place struct {
	kind
	key zkmodel.UploadKey // with what the kind has of it
}

// placeOf takes a path apart.
func placeOf(path string) (place, error) {
	parts := strings.Split(strings.TrimPrefix(path, zkmodel.ImagesRoot+"/"), "/")
	p := place{key: zkmodel.UploadKey{Image: parts[0]}}
	var names error
	switch {
	case path == zkmodel.PausePath(parts[0]):
		p.kind = pause
	case path == zkmodel.RequestBuildPath(parts[0]):
		p.kind = request
	case len(parts) == 3 && path == zkmodel.BuildPath(parts[0], parts[2]):
		p.kind, p.key.Build = build, parts[2]
		names = configs.CheckName("build", parts[2])
	default:
		key, err := zkmodel.ParseUploadPath(path)
		if err != nil {
			return p, fmt.Errorf("%w: %q is not the path of a flag, a build or an upload", ErrFile, path)
		}
		p.kind, p.key = upload, key
		names = errors.Join(configs.CheckName("build", key.Build), configs.CheckName("provider", key.Provider), configs.CheckName("upload", key.ID))
	}
	if err := errors.Join(configs.CheckName("image", p.key.Image), names); err != nil {
		return p, fmt.Errorf("%w: %q: %w", ErrFile, path, err)
	}
	return p, nil
}

// Encode is the file: one JSON object, sorted by path.
func (d Data) Encode() ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(d)
	return out.Bytes(), err
}

// Parse reads a file, of ours or of Nodepool's.
//
// Errors: ErrFile, with the line of what is not JSON, or the path of what is none of a flag,
// a build or an upload, or of an upload whose build the file does not have.
func Parse(text []byte) (Data, error) {
	d := Data{}
	err := json.Unmarshal(text, &d)
	if err == nil && d == nil { // {} is of a tree without images
		return nil, fmt.Errorf("%w: it is null", ErrFile)
	}
	if err != nil {
		at := int64(len(text))
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = e.Offset
		}
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			at = e.Offset
		}
		return nil, fmt.Errorf("%w: line %d: %w", ErrFile, 1+bytes.Count(text[:min(at, int64(len(text)))], []byte("\n")), err)
	}
	for _, path := range slices.Sorted(maps.Keys(d)) {
		p, err := placeOf(path)
		if err != nil {
			return nil, err
		}
		if _, has := d[zkmodel.BuildPath(p.key.Image, p.key.Build)]; p.kind == upload && !has {
			return nil, fmt.Errorf("%w: %q: the file does not have the build", ErrFile, path)
		}
		if len(d[path]) > maxText {
			return nil, fmt.Errorf("%w: %q: %d bytes are more than a record may have", ErrFile, path, len(d[path]))
		}
	}
	return d, nil
}

// maxText bounds a record, in bytes: ZooKeeper takes 1 MiB a request.
const maxText = 512 << 10

// Counts are how many of each kind there are.
type Counts struct{ Images, Builds, Uploads, Pauses, Requests int }

// Counts counts what Data holds.
func (d Data) Counts() (n Counts) {
	images := map[string]bool{}
	for path := range d {
		p, err := placeOf(path)
		if err != nil { // cannot be: Read and Parse leave none in
			continue
		}
		images[p.key.Image] = true
		*[]*int{&n.Pauses, &n.Requests, &n.Builds, &n.Uploads}[p.kind]++
	}
	n.Images = len(images)
	return n
}

// String says how many in words.
func (n Counts) String() string {
	return fmt.Sprintf("%d builds and %d uploads of %d images, %d pauses, %d requests for builds",
		n.Builds, n.Uploads, n.Images, n.Pauses, n.Requests)
}
