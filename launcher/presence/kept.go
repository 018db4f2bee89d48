package presence

import (
	"context"
	"sync"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Kept is the record of a launcher that outlives its configurations: another one changes what
// it says, and does not take it away, so that nobody takes the launcher for gone meanwhile.
type Kept struct {
	record *recipe.Registration
	begun  chan struct{}
	once   sync.Once
}

// NewKept makes a Kept. Nothing is registered before Hold.
func NewKept(client *recipe.Client, host Host) *Kept {
	return &Kept{record: recipe.NewRegistration(client, zkmodel.ComponentsRoot+"/"+zkmodel.KindLauncher, host.Name, nil), begun: make(chan struct{})}
}

// Hold keeps the record from the first Run on, until ctx ends.
func (k *Kept) Hold(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-k.begun:
		return k.record.Run(ctx)
	}
}

// Run has the record be there; it stays when ctx ends.
func (k *Kept) Run(ctx context.Context) error {
	k.once.Do(func() { close(k.begun) })
	<-ctx.Done()
	return nil
}

// Set changes what the record says.
func (k *Kept) Set(data []byte) { k.record.Set(data) }
