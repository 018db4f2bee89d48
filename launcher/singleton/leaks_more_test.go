package singleton

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// relaunched is a cloud with a machine of launch x, whose node's record is of launch y.
func relaunched() *leakCloud {
	return &leakCloud{
		tree:     tree{nodes: []*zkmodel.Node{{ID: "1", State: zkmodel.NodeReady, Provider: "cloud", ExternalID: zkmodel.TextValue("n")}}},
		machines: []providers.NodeInfo{machine("1", providers.MetaLaunch, "x")}, launches: map[string]string{"1": "y"},
	}
}

// wantKept fails a test if a machine was deleted, or if the log does not tell why not.
func (c *leakCloud) wantKept(t *testing.T, why string) {
	t.Helper()
	if strings.Contains(strings.Join(c.did, ", "), "remove") || c.counted > 0 {
		t.Errorf("done is %q", c.did)
	}
	if log := c.log.String(); !strings.Contains(log, "Cannot delete a leaked machine") || !strings.Contains(log, why) {
		t.Errorf("told is %q, want %q", log, why)
	}
}

// Catches a machine that is deleted although what was found of its node has changed by the time
// of the proof: a record that was made meanwhile, or is of this machine, or cannot be read.
func TestNoLeakIsDeletedWithoutItsProof(t *testing.T) {
	t.Run("a record that was made meanwhile", func(t *testing.T) {
		c := &leakCloud{machines: []providers.NodeInfo{machine("1")}, absent: zkmodel.ErrRecorded}
		c.passes(t, 2)
		c.wantKept(t, zkmodel.ErrRecorded.Error())
	})
	t.Run("a record that is of this machine", func(t *testing.T) {
		c := relaunched()
		c.reread = &zkmodel.Node{ID: "1", State: zkmodel.NodeReady, Provider: "cloud", ExternalID: zkmodel.TextValue("m")}
		c.passes(t, 2)
		c.wantKept(t, "node 1 has a record")
	})
	t.Run("a record whose launch cannot be read", func(t *testing.T) {
		c, asked := relaunched(), 0
		c.launch = func() error {
			if asked++; asked == 3 { // by two searches, and then under the lock
				return errDown
			}
			return nil
		}
		c.passes(t, 2)
		c.wantKept(t, errDown.Error())
	})
}

// Catches a launch that cannot be read and is taken for none.
func TestALaunchThatCannotBeReadEndsTheSearch(t *testing.T) {
	c := relaunched()
	l := c.leaks()
	wantNone(t, l.pass(t.Context()))
	c.launch = func() error { return errDown }
	if err := l.pass(t.Context()); !errors.Is(err, errDown) || c.counted > 0 || len(c.kept) > 0 {
		t.Errorf("%v; %d machines were deleted; kept is %v", err, c.counted, c.kept)
	}
	beside := machine("2") // which has no record
	beside.ExternalID = "beside"
	c.machines = append(c.machines, beside)
	for range 2 {
		if err := l.pass(t.Context()); !errors.Is(err, errDown) {
			t.Errorf("not told: %v", err)
		}
	}
	if c.counted != 1 || !slices.Contains(c.did, "remove beside of 2") {
		t.Errorf("one launch that cannot be read holds up another machine: did %q", c.did)
	}
}

// Catches what belongs to machines that is cleaned where no machine could be listed, or never; and
// nothing told of it.
func TestWhatMachinesHaveLeftIsCleaned(t *testing.T) {
	c := &leakCloud{cleaned: map[string]int{"floating IPs": 2}, listing: errDown}
	l := c.leaks()
	if err := l.pass(t.Context()); !errors.Is(err, errDown) || len(c.did) > 0 {
		t.Errorf("%v; done is %q", err, c.did)
	}
	c.listing = nil
	wantNone(t, l.pass(t.Context()))
	if len(c.did) != 1 || !strings.Contains(c.log.String(), "floating IPs") {
		t.Errorf("done is %q, told is %q", c.did, c.log)
	}
}

// Catches a memory that is read by each search, one that cannot be read or written without a word,
// one whose write is not tried again, and one that is read late and ends what was found meanwhile.
func TestTheMemoryOfLeaksComesBack(t *testing.T) {
	t.Run("read", func(t *testing.T) {
		c := &leakCloud{memory: errDown}
		l := c.leaks()
		if err := l.pass(t.Context()); !errors.Is(err, errDown) {
			t.Errorf("told is %v", err)
		}
		c.machines = []providers.NodeInfo{machine("1")}
		if err := l.pass(t.Context()); !errors.Is(err, errDown) {
			t.Errorf("told is %v", err)
		}
		c.memory = nil
		wantNone(t, l.pass(t.Context()))
		if c.counted != 1 {
			t.Error("what was found while the memory could not be read is forgotten")
		}
		wantNone(t, l.pass(t.Context()))
		if c.reads != 3 {
			t.Errorf("the memory was read %d times", c.reads)
		}
	})
	t.Run("written", func(t *testing.T) {
		c := &leakCloud{machines: []providers.NodeInfo{machine("1")}, saving: errDown}
		l := c.leaks()
		l.age = time.Minute
		if err := l.pass(t.Context()); !errors.Is(err, errDown) {
			t.Errorf("told is %v", err)
		}
		c.saving = nil
		wantNone(t, l.pass(t.Context()))
		if c.saves != 1 || len(c.kept) != 1 {
			t.Errorf("saved %d times; kept is %v", c.saves, c.kept)
		}
	})
}

// Catches a worker that takes a search a moment ago for one of its two, searches once, or tells
// of searches that went well, or that were ended with it.
func TestLeaksAreLookedForEverySoOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := &leakCloud{machines: []providers.NodeInfo{machine("1")}, kept: map[string]time.Time{"m": began}}
		l := c.leaksAt(time.Now)
		ctx, stop := context.WithCancel(t.Context())
		searches, told := 0, func() int { return strings.Count(c.log.String(), "Cannot look for leaks") }
		c.listed = func() {
			if at := time.Duration(searches) * time.Minute; time.Since(began) != at {
				t.Errorf("search %d comes after %s, want %s", searches+1, time.Since(began), at)
			}
			switch searches++; searches {
			case 2:
				if c.counted > 0 {
					t.Error("another had just made the first search, and the machine was deleted by the second one")
				}
			case 3:
				if c.counted != 1 || told() > 0 {
					t.Errorf("%d machines were deleted; told is %q", c.counted, c.log)
				}
				c.listing = errDown
			case 4:
				if told() != 1 {
					t.Errorf("told %d times of a search that failed:\n%s", told(), c.log)
				}
				stop()
			}
		}
		wantNone(t, l.Run(ctx, time.Minute))
		if searches != 4 || told() != 1 {
			t.Errorf("%d searches; told %d times, the last of a search that was ended:\n%s", searches, told(), c.log)
		}
	})
}
