package guard

import (
	"encoding/json"
	"fmt"
	"slices"

	"poolkeeper/configs"
)

// Record is what is kept of one daemon's configuration while it does not run.
type Record struct {
	Memory Memory `json:"memory"`
	// File is the digest of the names and limits of the file that was judged last,
	// and Guarded what of it is not in effect.
	File    string `json:"file"`
	Guarded []Item `json:"guarded,omitempty"`
}

// Acceptance is what an operator has accepted.
type Acceptance struct {
	// File is the digest of the names and limits of a file: whatever it changes is
	// accepted.
	File string `json:"file"`
	// Items are accepted whatever file they are missing in.
	Items []Item `json:"items,omitempty"`
}

// Covers tells whether an item of a file is accepted.
func (a Acceptance) Covers(file string, i Item) bool {
	return a.File == file || slices.ContainsFunc(a.Items, func(x Item) bool { return x.Covers(i) })
}

// Encode is the record as it is kept.
func (r Record) Encode() ([]byte, error) { return json.Marshal(r) }

// Encode is the acceptance as it is kept.
func (a Acceptance) Encode() ([]byte, error) { return json.Marshal(a) }

// DecodeRecord reads what was kept.
func DecodeRecord(data []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("decode what is kept of a configuration: %w", err)
	}
	return r, nil
}

// DecodeAcceptance reads what was accepted.
func DecodeAcceptance(data []byte) (Acceptance, error) {
	var a Acceptance
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("decode what was accepted: %w", err)
	}
	return a, nil
}

// Doubt is a configuration of which nobody knows what it takes the place of, because
// that cannot be read: all that it does not have is frozen.
func Doubt(next *configs.Config, why string) *configs.Config {
	in := next.Copy()
	for _, kind := range []string{KindImage, KindLabel, KindProvider} {
		in.Freeze(configs.Frozen{Kind: kind, Why: why})
	}
	for _, p := range in.Providers {
		in.Freeze(configs.Frozen{Kind: KindProviderImage, Provider: p.Name, Why: why})
		in.Freeze(configs.Frozen{Kind: KindPool, Provider: p.Name, Why: why})
		for _, pool := range p.Pools {
			in.Freeze(configs.Frozen{Kind: KindPoolLabel, Provider: p.Name, Pool: pool.Name, Why: why})
		}
	}
	return in
}
