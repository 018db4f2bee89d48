package fleet

import "time"

// SetPatience is gatePatience for a test.
func (g *Gate) SetPatience(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.patience = d
}

// Opened is a gate that is open, for ever.
func Opened() *Gate {
	g := NewGate("", nil, nil)
	g.let()
	return g
}
