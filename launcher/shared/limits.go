package shared

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Limits follows what providers said of their limits. A provider is asked by one launcher,
// which writes them into the tree for all. They are asked for again when they are old;
// sooner while a request waits for room, and when they were taken out of the tree, by
// a launcher that met a cloud that was fuller than it said.
type Limits struct{ *recipe.Tree }

// NewLimits makes a Limits.
func NewLimits(client *recipe.Client, log hclog.Logger) *Limits {
	return &Limits{newFolder(client, zkmodel.LimitsRoot, log.Named("limits"))}
}

// Limited is a cloud that has limits.
type Limited interface {
	Limit(limits providers.Resources)
}

// Run hands on to clouds what was written, until ctx ends.
func (l *Limits) Run(ctx context.Context, clouds map[string]Limited) error {
	return follow(ctx, l.Tree, func() {
		for name, c := range clouds {
			if entry, there := l.Get(zkmodel.LimitsPath(name)); there {
				limit(c, entry.Data)
			}
		}
	})
}

// limit hands limits on. Those that cannot be decoded are as good as none.
func limit(c Limited, data []byte) {
	var limits providers.Resources
	if json.Unmarshal(data, &limits) == nil {
		c.Limit(limits)
	}
}
