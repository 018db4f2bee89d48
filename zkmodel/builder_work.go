package zkmodel

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// BuilderWorkPath is the parent of what running builders are at, each in an ephemeral node.
const BuilderWorkPath = OwnRoot + "/builders"

// BuilderWork is what a builder is at, and how many workers it has for that.
type BuilderWork struct {
	Host          string            `json:"host"` // full name, as in build records
	BuildWorkers  int               `json:"build_workers"`
	UploadWorkers int               `json:"upload_workers"`
	Builds        []string          `json:"builds"` // images
	Uploads       []BuilderTransfer `json:"uploads"`
	ClockOff      time.Duration     `json:"clock_off"` // by how much its clock is early, in ns
}

// BuilderTransfer is an upload under way.
type BuilderTransfer struct {
	Image    string `json:"image"`
	Build    string `json:"build"`
	Provider string `json:"provider"`
}

// Encode is the record as it goes into the znode.
func (w BuilderWork) Encode() []byte {
	data, _ := json.Marshal(w) // strings and numbers always encode
	return data
}

// BuilderWorks lists what the running builders are at. What cannot be decoded is left out:
// it is for people only.
func (st *Store) BuilderWorks(ctx context.Context) ([]BuilderWork, error) {
	members, err := recipe.Members(ctx, st.session, BuilderWorkPath)
	if err != nil {
		return nil, fmt.Errorf("list what builders are at: %w", err)
	}
	var list []BuilderWork
	for _, m := range members {
		var w BuilderWork
		if json.Unmarshal(m.Data, &w) == nil {
			list = append(list, w)
		}
	}
	return list, nil
}
