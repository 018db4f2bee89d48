package fleet_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/recipe"
)

// BenchmarkSeenByAll is how long after a push of 2 MB ten daemons, each with a session of its
// own, have the text, verified. What a daemon does with it afterwards is not in it.
func BenchmarkSeenByAll(b *testing.B) {
	root := zktest.Root(b)
	dial := func() *recipe.Client {
		c, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(b).Addr()}, Chroot: root})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(c.Close)
		return c
	}
	key, err := fleet.NewKey(b.TempDir() + "/key")
	if err != nil {
		b.Fatal(err)
	}
	public, err := configs.ParseSigner(key.Public())
	if err != nil {
		b.Fatal(err)
	}
	signers := []ed25519.PublicKey{public}
	ctx, cancel := context.WithCancel(b.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	const daemons = 10
	seen := make(chan uint64, 1000)
	for range daemons {
		client := dial()
		agent := fleet.NewAgent("builder", "host", "", func() ([]ed25519.PublicKey, error) { return signers, nil }, hclog.NewNullLogger())
		group.Go(func() {
			_ = fleet.Follow(ctx, client, agent, func() {
				if k, fresh := agent.Pick(); fresh {
					agent.Done(nil)
					seen <- k.Version.Number
				}
			}, func(err error) { b.Error(err) })
		})
	}
	session, err := dial().Session(ctx)
	if err != nil {
		b.Fatal(err)
	}
	store := fleet.NewStore(session)
	var text strings.Builder
	for i := 0; text.Len() < 2<<20; i++ {
		fmt.Fprintf(&text, "  - {name: label-%d, min-ready: %d}\n", i, rand.IntN(1000))
	}
	var total, slowest time.Duration
	for i := 0; b.Loop(); i++ {
		current, now, err := store.Look(ctx)
		if err != nil {
			b.Fatal(err)
		}
		d := fleet.Draft{
			Text: fmt.Appendf(nil, "# %d\nlabels:\n%s", i, text.String()), By: "us@here", Seen: now,
			Known: func(v *fleet.Version) bool { return v.Verify(signers) == nil }, Now: time.Now(),
		}
		if current != nil {
			d.After, d.Predecessor = current.Number, current.ID()
		}
		v, err := store.Push(ctx, key, d)
		if err != nil {
			b.Fatal(err)
		}
		pushed := time.Now()
		for all := 0; all < daemons; {
			if number := <-seen; number == v.Number {
				all++
			}
		}
		took := time.Since(pushed)
		total, slowest = total+took, max(slowest, took)
	}
	b.ReportMetric(float64(total.Microseconds())/1000/float64(b.N), "ms/seen")
	b.ReportMetric(float64(slowest.Microseconds())/1000, "ms/slowest")
}
