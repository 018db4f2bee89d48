package zkmodel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"time"
)

// BuilderIDPath is the lock that a builder holds while it works under a builder id.
func BuilderIDPath(id string) string { return builderIDs + "/" + url.PathEscape(id) }

// BuilderOwner is what the holder of such a lock tells of itself.
type BuilderOwner struct {
	Host      string        `json:"host"`
	ImagesDir string        `json:"images_dir"`
	Timeout   time.Duration `json:"session_timeout"` // in ns
}

// Encode is the owner as an identifier of a lock.
func (o BuilderOwner) Encode() string {
	data, _ := json.Marshal(o) // strings and numbers always encode
	return string(data)
}

// DecodeBuilderOwner reads such an identifier. What it does not tell is taken to be
// unknown, or timeout.
func DecodeBuilderOwner(identifier string, timeout time.Duration) BuilderOwner {
	var o BuilderOwner
	if json.Unmarshal([]byte(identifier), &o) != nil || o.Timeout <= 0 {
		o.Timeout = timeout
	}
	return o
}

// String names the owner.
func (o BuilderOwner) String() string {
	return fmt.Sprintf("the builder on %s, in %s", cmp.Or(o.Host, "an unknown host"), cmp.Or(o.ImagesDir, "an unknown folder"))
}
