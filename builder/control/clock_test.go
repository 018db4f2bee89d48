package control

import (
	"testing"
	"time"
)

// What time it is follows ZooKeeper's clock, however ours is set.
func TestClock(t *testing.T) {
	real := time.Now()
	ours := real
	c := &treeClock{ours: func() time.Time { return ours }}
	if got := c.now(); !got.Equal(ours) || c.off() != 0 {
		t.Errorf("before a reading: %s, off %s", got, c.off())
	}
	ours = real.Add(48 * time.Hour)
	c.set(ours, -48*time.Hour)
	ours = ours.Add(time.Minute)
	if got, want := c.now(), real.Add(time.Minute); !got.Equal(want) || c.off() != 48*time.Hour {
		t.Errorf("a minute after a reading: %s, want %s; off %s", got, want, c.off())
	}
}
