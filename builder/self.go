package builder

import (
	"context"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// self is what the tree tells of this daemon.
type self struct {
	record       zkmodel.Component
	registration *recipe.Registration
}

func newSelf(deps Deps) *self {
	s := &self{record: zkmodel.Component{
		Hostname: deps.Hostname, Kind: zkmodel.KindBuilder,
		State: zkmodel.ComponentInitializing, Version: deps.Version,
	}}
	s.registration = recipe.NewRegistration(deps.Client, zkmodel.ComponentsRoot+"/"+zkmodel.KindBuilder,
		s.record.Hostname, s.data())
	return s
}

func (s *self) data() []byte {
	data, _ := s.record.Encode() // strings always encode
	return data
}

// set changes the state. Sessions follow one another, so that there is one
// caller at a time.
func (s *self) set(state string) {
	s.record.State = state
	s.registration.Set(s.data())
}

// run keeps the record in the tree until ctx ends.
func (s *self) run(ctx context.Context) error { return s.registration.Run(ctx) }
