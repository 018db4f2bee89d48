package waves_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/wave"
)

// gate is one that decisions stand behind, as behind that of the fleet.
type gate struct {
	mu      sync.Mutex
	shut    chan struct{} // nil is open
	waiting int
	inside  int
}

func (g *gate) enter(ctx context.Context) (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.shut != nil && ctx.Err() == nil {
		shut := g.shut
		g.waiting++
		g.mu.Unlock()
		select {
		case <-shut:
		case <-ctx.Done():
		}
		g.mu.Lock()
		g.waiting--
	}
	g.inside++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.inside--
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}

// state is how many decisions wait, and are under way.
func (g *gate) state() (waiting, inside int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting, g.inside
}

// Mistakes: a wave that begins, goes on or is made, by its time or by a hook, while a version
// of the configuration is switched; a decision that is never left, or that another begins within
// it, so that a push waits for ever.
func TestWavesDecideByOneVersion(t *testing.T) {
	t.Parallel()
	s := hooked(t)
	s.gate = &gate{}
	s.config.Waves = []configs.Wave{{Name: "daily", Schedule: "@daily", Match: []string{"fedora"}, Order: "freshness", Until: "uploaded", MaxFailures: "0"}}
	s.driver("one", nil)
	s.builder("x")
	ctx, ses := t.Context(), s.models.Session()
	s.eventually("the schedule is known", func() bool {
		_, there, err := ses.Exists(ctx, wave.Root+"/schedules/daily")
		return err == nil && there
	})
	s.eventually("no decision is under way", func() bool { waiting, inside := s.gate.state(); return waiting+inside == 0 })
	s.gate.close()
	s.create("w")
	s.told("elements", "1")
	s.later(48 * time.Hour)
	s.eventually("the wave, the schedule and the hook wait", func() bool { waiting, inside := s.gate.state(); return waiting == 3 && inside == 0 })
	if list := s.waves(); len(list) != 1 || list[0].Status.State != wave.Pending || s.queued() != 1 {
		t.Errorf("decided while a version is switched: %+v, %d deliveries wait", list, s.queued())
	}
	for _, image := range s.config.DiskImages {
		if _, asked, err := ses.Exists(ctx, zkmodel.RequestBuildPath(image.Name)); asked || err != nil {
			t.Errorf("%s is asked for: %v", image.Name, err)
		}
	}
	s.gate.open()
	if r := s.result("w"); r.State != wave.Completed {
		t.Errorf("report %+v", r)
	}
	s.eventually("the others are made, and all are over", func() bool {
		over := 0
		for _, e := range s.waves() {
			if e.Status.State.Over() {
				over++
			}
		}
		return over == 3
	})
	s.eventually("all decisions are left", func() bool { waiting, inside := s.gate.state(); return waiting+inside == 0 })
}
