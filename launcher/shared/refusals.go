package shared

import (
	"context"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Refusals follows what clouds taught by refusing. Whoever meets one that refuses writes
// what that teaches into the tree (Teacher), where all launchers heed it; what becomes of
// it is decided in the package lesson.
type Refusals struct{ *recipe.Tree }

// NewRefusals makes a Refusals.
func NewRefusals(client *recipe.Client, log hclog.Logger) *Refusals {
	return &Refusals{newFolder(client, zkmodel.RefusalsRoot, log.Named("refusals"))}
}

// Run calls changed whenever something was learned, until ctx ends.
func (r *Refusals) Run(ctx context.Context, changed func()) error {
	return follow(ctx, r.Tree, changed)
}

// Pupil is a cloud as its refusals are read from the tree.
type Pupil interface {
	Read(entry recipe.Entry)
}

// Tell hands to a cloud what the tree says of it.
func (r *Refusals) Tell(provider string, cloud Pupil) {
	if entry, there := r.Get(zkmodel.RefusalsPath(provider)); there {
		cloud.Read(entry)
	}
}
