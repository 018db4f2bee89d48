package fake

import (
	"sync"
)

// ledger keeps the table.
type ledger interface {
	// read shows the table as all processes have left it. The function must
	// not keep it.
	read(func(*state)) error
	// change lets one writer at a time look at the table and name the change
	// to be made; nil makes none.
	change(func(*state) (*event, error)) error
	close() error
}

// openLedger keeps the table in memory, or in dir when there is one.
func openLedger(dir, name string) (ledger, error) {
	if dir == "" {
		return &memory{state: newState()}, nil
	}
	return openShared(dir, name)
}

// memory is the ledger of one process.
type memory struct {
	mu    sync.Mutex
	state *state
}

func (m *memory) read(look func(*state)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	look(m.state)
	return nil
}

func (m *memory) change(decide func(*state) (*event, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := decide(m.state)
	if err != nil || e == nil {
		return err
	}
	m.state.apply(*e)
	return nil
}

func (*memory) close() error { return nil }
