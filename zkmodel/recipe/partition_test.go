package recipe_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// duties are partitions of one share each, as those of a launcher are, and who
// works them.
type duties struct {
	t    *testing.T
	root string

	mu      sync.Mutex
	workers map[string]string // by folder
	took    map[string]int    // how many were taken by a member, ever
}

const dutyCount = 20

func dutyFolder(i int) string { return fmt.Sprintf("/duties/label-%d", i) }

// join has a member take part in all.
func (d *duties) join(member string) (leave func()) {
	d.t.Helper()
	c := dial(d.t, d.root)
	var stops []func()
	for i := range dutyCount {
		folder := dutyFolder(i)
		p := recipe.NewPartition(c, folder, member, recipe.PartitionOptions{Settle: 100 * time.Millisecond})
		p.SetShares([]string{"duty"})
		stops = append(stops, running(d.t, func(ctx context.Context) error {
			return p.Run(ctx, func(ctx context.Context, _ string, _ *recipe.Held) error {
				d.begin(folder, member)
				<-ctx.Done()
				d.end(folder)
				return nil
			})
		}))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

func (d *duties) begin(folder, member string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if other := d.workers[folder]; other != "" {
		d.t.Errorf("%s is worked by %s and %s", folder, other, member)
	}
	d.workers[folder] = member
	d.took[member]++
}

func (d *duties) end(folder string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.workers, folder)
}

// divided waits until each is worked by who owner says.
func (d *duties) divided(why string, owner func(folder string) string) {
	d.t.Helper()
	want := map[string]string{}
	for i := range dutyCount {
		if who := owner(dutyFolder(i)); who != "" {
			want[dutyFolder(i)] = who
		}
	}
	zktest.Eventually(d.t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return maps.Equal(d.workers, want)
	}, "%s", why)
}

// Partitions whose shares are called alike are shared by all members; while one of
// the first release is there, with its empty node, all hash as it does, so that
// nothing is left for nobody.
func TestPartitionsWithEqualShares(t *testing.T) {
	t.Parallel()
	d := &duties{t: t, root: zktest.Root(t), workers: map[string]string{}, took: map[string]int{}}
	all := []string{"nl01", "nl02", "nl03", "nl04"}
	byFolder := func(folder string) string { return recipe.Owner(all, folder+"/duty") }
	for _, member := range all {
		d.join(member)
	}
	d.divided("shared by all", byFolder)
	for _, member := range all {
		if d.took[member] == 0 {
			t.Errorf("%s has none of %d", member, dutyCount)
		}
	}

	// One of the first release joins: of equal shares all fall to one member.
	s, ctx := session(t, dial(t, d.root)), t.Context()
	old := ""
	for i := 0; recipe.Owner(append(all, old), "duty") != old || old == ""; i++ {
		old = fmt.Sprintf("old%02d", i) // one that it would be
	}
	for i := range dutyCount {
		_, err := s.Create(ctx, dutyFolder(i)+"/members/"+old, nil, recipe.Ephemeral)
		must(t, err)
	}
	d.divided("left to the old one", func(string) string { return "" })

	for i := range dutyCount {
		must(t, s.Delete(ctx, dutyFolder(i)+"/members/"+old, recipe.AnyVersion))
	}
	d.divided("shared by all again", byFolder)
}
