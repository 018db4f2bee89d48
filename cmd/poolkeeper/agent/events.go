package agent

import (
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event/observe"
)

// observe has a daemon tell what others write, as far as its mirror shows it.
func (s site) observe(tree *zkmodel.Mirror, daemon, host string, parts ...observe.Part) {
	for _, part := range parts {
		s.events.Beside(observe.New(part, observe.Deps{
			Client: s.client, Tree: tree, Member: daemon + " " + host, Logger: s.log, Hold: s.process.Hold,
		}).Run)
	}
}
