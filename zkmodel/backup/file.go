package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Format is what the first line of a file says; another one is of another release.
const Format = "poolkeeper backup v1"

// header is the first line, a Record each of the next, and the sum the last: SHA-256 of all
// lines before it.
type header struct {
	Format   string    `json:"format"`
	Time     time.Time `json:"time"`
	By       string    `json:"by,omitempty"`
	Records  int       `json:"records"`
	UnderWay []string  `json:"waves_under_way,omitempty"`
}

type sum struct {
	SHA256 string `json:"sha256"`
}

// Encode is the file.
func (w *Whole) Encode() ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(header{Format, w.Time, w.By, len(w.Records), w.UnderWay}); err != nil {
		return nil, err
	}
	for _, r := range w.Records {
		if err := e.Encode(r); err != nil {
			return nil, err
		}
	}
	digest := sha256.Sum256(out.Bytes())
	err := e.Encode(sum{hex.EncodeToString(digest[:])})
	return out.Bytes(), err
}

// ParseWhole reads a file.
//
// Errors: ErrFile, with the line, or what of it is missing.
func ParseWhole(text []byte) (*Whole, error) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	wrong := func(line int, format string, args ...any) (*Whole, error) {
		return nil, fmt.Errorf("%w: line %d: %w", ErrFile, line, fmt.Errorf(format, args...))
	}
	var h header
	if err := json.Unmarshal(lines[0], &h); err != nil || h.Format != Format {
		return wrong(1, "it is not %q; a file of export-image-data is for import-image-data", Format)
	}
	if h.Records < 0 || len(lines) != h.Records+3 || len(lines[h.Records+2]) > 0 {
		return wrong(len(lines), "it has not the %d records that it begins with: it is cut off, or was changed", h.Records)
	}
	var said sum
	digest := sha256.Sum256(bytes.Join(lines[:h.Records+1], nil))
	if err := json.Unmarshal(lines[h.Records+1], &said); err != nil || said.SHA256 != hex.EncodeToString(digest[:]) {
		return wrong(h.Records+2, "the sum is not that of the file: it is damaged, or was changed")
	}
	w := &Whole{Time: h.Time, By: h.By, UnderWay: h.UnderWay}
	last := ""
	for n, line := range lines[1 : h.Records+1] {
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return wrong(n+2, "%w", err)
		}
		if err := r.check(last); err != nil {
			return wrong(n+2, "%w", err)
		}
		w.Records, last = append(w.Records, r), r.Path
	}
	images, err := w.Images().Encode()
	if err == nil {
		_, err = Parse(images)
	}
	return w, err
}

// check refuses what a backup does not have: the sum says that the file is whole, not that it
// is ours.
func (r *Record) check(last string) error {
	_, ours := rank(r.Path)
	_, err := placeOf(r.Path)
	_, folder := folderOf(r.Path)
	switch {
	case r.Path <= last:
		return fmt.Errorf("%q comes behind %q", r.Path, last)
	case r.Next != 0 && (!folder || r.Next < 0 || r.Next > maxNumber):
		return fmt.Errorf("%q is no folder that counts to %d", r.Path, r.Next)
	case r.Next == 0 && !ours && err != nil:
		return err
	case len(r.data()) > 2*maxText:
		return fmt.Errorf("%q: %d bytes are more than a record may have", r.Path, len(r.data()))
	}
	for part := range strings.SplitSeq(r.Path[1:], "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsRune(part, 0) {
			return fmt.Errorf("%q is no path", r.Path)
		}
	}
	return nil
}

func isFolder(at string) bool {
	_, is := folderOf(at)
	return is
}

// folderOf takes the path of a folder of builds or uploads apart.
func folderOf(at string) (image string, ok bool) {
	p, err := placeOf(at + "/0000000000")
	return p.key.Image, err == nil && (p.kind == build || p.kind == upload)
}
