package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"poolkeeper/providers/fake"
	"poolkeeper/zkmodel"
)

// siteFaults are what clouds and people do.
func siteFaults(w *world) []fault {
	return []fault{
		w.cloudFault("cloud refuses", fake.Faults{Refuse: []string{fake.OpCreate, fake.OpUpload, fake.OpDeleteNode, fake.OpDeleteImage, fake.OpList, fake.OpWait, fake.OpLimits}}),
		w.cloudFault("cloud loses answers", fake.Faults{Lose: []string{fake.OpCreate, fake.OpUpload, fake.OpDeleteNode, fake.OpDeleteImage}}),
		w.cloudFault("cloud is slow", fake.Faults{Delay: 1500 * time.Millisecond}),
		w.cloudFault("cloud has less room than it says", fake.Faults{Room: 2}),
		{"configuration changed", func(ctx context.Context, r *rand.Rand) string {
			d := 2*time.Second + time.Duration(r.Int64N(int64(3*time.Second)))
			w.configure(1)
			wait(ctx, d)
			w.configure(0)
			return "and changed back"
		}},
		{"configuration cut short", func(ctx context.Context, r *rand.Rand) string {
			d := time.Second + time.Duration(r.Int64N(int64(2*time.Second)))
			mend := w.spoil()
			wait(ctx, d)
			mend()
			return "and written again"
		}},
		{"record garbled by hand", func(ctx context.Context, r *rand.Rand) string {
			return w.idleNode(ctx, r, func(h *hand, n *zkmodel.Node) string {
				data := h.read(n.Path())
				if data == nil {
					return ""
				}
				w.garbled.Store(n.Path(), data)
				if !h.garble(n.Path(), data, n.Stat.Version) {
					return ""
				}
				wait(ctx, 3*time.Second)
				w.mend(ctx, n.Path(), data)
				return "node " + n.ID
			})
		}},
		{"record deleted by hand", func(ctx context.Context, r *rand.Rand) string {
			return w.idleNode(ctx, r, func(h *hand, n *zkmodel.Node) string {
				if !h.remove(n.Path(), n.Stat.Version) {
					return ""
				}
				w.watch.orphan(n.ExternalID.Text(), "its record was deleted by hand")
				return "node " + n.ID
			})
		}},
		{"record edited by hand", func(ctx context.Context, r *rand.Rand) string {
			return w.idleNode(ctx, r, func(h *hand, n *zkmodel.Node) string {
				if !h.edit(n.Path(), n.Stat.Version, "state", "used") {
					return ""
				}
				return "node " + n.ID + " is said to be used"
			})
		}},
	}
}

// cloudFault has a cloud do wrong for a while.
func (w *world) cloudFault(kind string, f fake.Faults) fault {
	return fault{kind, func(ctx context.Context, r *rand.Rand) string {
		name := one(r, cloudNames())
		d := 2*time.Second + time.Duration(r.Int64N(int64(4*time.Second)))
		if f.Room > 0 {
			name = one(r, []string{"east", "west", "north", "south"})
			w.watch.lies(name, d)
		}
		w.must(fake.SetFaults(w.path("clouds"), name, f))
		wait(ctx, d)
		w.must(fake.SetFaults(w.path("clouds"), name, fake.Faults{}))
		return name
	}}
}

// mend mends a garbled record, also when there are no more faults.
func (w *world) mend(ctx context.Context, at string, data []byte) {
	if !mend(context.WithoutCancel(ctx), w.ensemble.Addrs(), at, data) {
		w.watch.wrong("no server would have %s mended for %s", at, mendTime)
	}
}

// idleNode does something to a node of small that nobody has, as soon as there is one.
func (w *world) idleNode(ctx context.Context, r *rand.Rand, do func(*hand, *zkmodel.Node) string) string {
	pick := r.Uint64()
	h, err := newHand(w.ensemble.Addrs())
	if err != nil {
		return ""
	}
	defer h.close()
	for range 30 {
		idle := slices.DeleteFunc(w.watch.latest(), func(n *zkmodel.Node) bool {
			return n.Broken != nil || n.State != zkmodel.NodeReady || n.AllocatedTo != "" || n.Locked || !slices.Contains(n.Type, "small")
		})
		if len(idle) > 0 {
			n := idle[pick%uint64(len(idle))]
			if what := do(h, n); what != "" {
				return fmt.Sprintf("%s in %s", what, n.Provider)
			}
		}
		if !wait(ctx, 200*time.Millisecond) {
			break
		}
	}
	return ""
}
