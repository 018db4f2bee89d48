package zkmodel

import (
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wire"
)

// Upload is the record of one image in one cloud (docs/wire.md §3.2). Keys
// from Reason on are Poolkeeper's own.
type Upload struct {
	UploadKey
	Stat   recipe.Stat
	Broken error // as in Build

	State        UploadState `wire:"state"`
	StateTime    Epoch       `wire:"state_time"`
	ExternalID   Value       `wire:"external_id"`
	ExternalName string      `wire:"external_name"`
	Format       string      `wire:"format"`
	Username     string      `wire:"username"`
	PythonPath   string      `wire:"python_path"`
	ShellType    string      `wire:"shell_type"`

	Token    string    `wire:"token,omitempty"`    // finds our own record after a lost connection
	Reason   string    `wire:"reason,omitempty"`   // why it failed
	Builder  string    `wire:"builder,omitempty"`  // who uploads
	Progress *Progress `wire:"progress,omitempty"` // while uploading
	Failures int       `wire:"failures,omitempty"` // failures in a row, this one included
	Suspect  string    `wire:"suspect,omitempty"`  // why launchers prefer an older build
	RetryAt  Epoch     `wire:"retry_at,omitempty"` // when it is tried again
	Transfer *Transfer `wire:"transfer,omitempty"` // of providers that send less than the whole
	// Asked is when the cloud was asked to create image AskedID; 0 once it answered. Until unanswered-create-timeout is over,
	// the cloud may still create that image, and the record stays.
	Asked   Epoch  `wire:"asked_time,omitempty"`
	AskedID string `wire:"asked_id,omitempty"`
	// DeleteError is why the last attempt to delete its image failed.
	DeleteError string `wire:"delete_error,omitempty"`

	by   Actor // who moved it since it was read or written
	rest wire.Extra
}

// Progress is how far an upload has come.
type Progress struct {
	Sent  int64   `json:"sent"`  // bytes
	Total int64   `json:"total"` // bytes
	Rate  float64 `json:"rate"`  // bytes a second
	ETA   float64 `json:"eta"`   // seconds
}

// Transfer is what an upload was sent of its image, and what it need not be.
type Transfer struct {
	Sent  int64 `json:"sent"`  // bytes
	Saved int64 `json:"saved"` // bytes
}

// DecodeUpload reads an upload record; what cannot be read is Broken.
func DecodeUpload(key UploadKey, data []byte, stat recipe.Stat) *Upload {
	u := &Upload{Username: "zuul", PythonPath: "/usr/bin/python2"}
	u.rest, u.Broken = wire.Decode(data, u)
	u.UploadKey, u.Stat = key, stat
	if u.State == deleteByHand {
		u.State = UploadDeleting
	}
	return u
}

// Encode is the record as it goes into the znode.
func (u *Upload) Encode() ([]byte, error) { return wire.Encode(u, u.rest) }
