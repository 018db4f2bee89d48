package recipe_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// duties are the shares of a partition, as those of launchers, and the members that work them.
type duties struct {
	t      *testing.T
	root   string
	shares []string

	mu      sync.Mutex
	workers map[string]string // by share
}

func newDuties(t *testing.T, count int) *duties {
	t.Helper()
	d := &duties{t: t, root: zktest.Root(t), workers: map[string]string{}}
	for i := range count {
		d.shares = append(d.shares, fmt.Sprintf("labels/label-%02d", i))
	}
	return d
}

// join starts a member; change alters its client and gives it the default calm; leave ends it in order.
func (d *duties) join(member string, change ...func(*recipe.Config)) (leave func()) {
	d.t.Helper()
	c := dial(d.t, d.root, change...)
	settle := 200 * time.Millisecond
	if len(change) > 0 {
		settle = 0
	}
	p := recipe.NewPartition(c, "/duties", member, d.shares, recipe.PartitionOptions{Settle: settle})
	return running(d.t, func(ctx context.Context) error {
		return p.Run(ctx, func(ctx context.Context, share string, _ *recipe.Held) error {
			d.begin(share, member)
			<-ctx.Done()
			d.end(share)
			return nil
		})
	})
}

func (d *duties) begin(share, member string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if other := d.workers[share]; other != "" {
		d.t.Errorf("%s is worked by %s and %s", share, other, member)
	}
	d.workers[share] = member
}

func (d *duties) end(share string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.workers, share)
}

// loads returns how many shares each member works, sorted.
func (d *duties) loads() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	count := map[string]int{}
	for _, member := range d.workers {
		count[member]++
	}
	return slices.Sorted(maps.Values(count))
}

func (d *duties) spread(why string, want ...int) {
	d.t.Helper()
	zktest.Eventually(d.t, func() bool { return slices.Equal(d.loads(), want) }, "%s: the members work %v shares", why, want)
}

// divided waits until each share is worked by the member that owner returns.
func (d *duties) divided(why string, owner func(folder string) string) {
	d.t.Helper()
	zktest.Eventually(d.t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return !slices.ContainsFunc(d.shares, func(share string) bool { return d.workers[share] != owner("/duties/"+share) })
	}, "%s", why)
}

// TestSharesAreEven starts members one after the other, stops one, and ends the session of another.
// Each share has one worker at a time, and the numbers of shares differ by at most one.
func TestSharesAreEven(t *testing.T) {
	t.Parallel()
	d := newDuties(t, 9)
	d.join("nl01")
	d.spread("one member", 9)
	leave := d.join("nl02")
	d.spread("two members", 4, 5)
	killed := d.kill("nl03")
	d.spread("three members", 3, 3, 3)
	killed()
	d.spread("one was killed", 4, 5)
	leave()
	d.spread("one has stopped", 9)
}

// kill starts a member and returns how to end it without a word: its session ends.
func (d *duties) kill(member string) (kill func()) {
	c := dial(d.t, d.root)
	p := recipe.NewPartition(c, "/duties", member, d.shares, recipe.PartitionOptions{Settle: 200 * time.Millisecond})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.Run(d.t.Context(), func(ctx context.Context, share string, _ *recipe.Held) error {
			d.begin(share, member)
			<-ctx.Done()
			d.end(share)
			return nil
		}) // its client is closed
	}()
	return func() {
		c.Close()
		<-done
	}
}

// TestMembersThatServeDifferentShares: a share falls only to a member that has it.
func TestMembersThatServeDifferentShares(t *testing.T) {
	t.Parallel()
	d := newDuties(t, 9)
	all := d.shares
	d.join("nl01")
	d.shares = all[:3]
	d.join("nl02")
	d.shares = all
	d.spread("three of nine at most", 3, 6)
	for _, share := range all[3:] {
		if d.workers[share] != "nl01" {
			t.Errorf("%s is worked by %s, which does not have it", share, d.workers[share])
		}
	}
}

// TestPartitionBesideEarlierReleases: while a member of an earlier release is registered in a share's
// folder, all divide that share as its release does. No share is left without a member.
func TestPartitionBesideEarlierReleases(t *testing.T) {
	t.Parallel()
	d := newDuties(t, 12)
	all := []string{"nl01", "nl02", "nl03"}
	for _, member := range all {
		d.join(member)
	}
	d.spread("even", 4, 4, 4)
	s, ctx := session(t, dial(t, d.root)), t.Context()
	earlier := func(member, data string, shares []string) (leave func()) {
		for _, share := range shares {
			_, err := s.Create(ctx, "/duties/"+share+"/members/"+member, []byte(data), recipe.Ephemeral)
			must(t, err)
		}
		return func() {
			for _, share := range shares {
				must(t, s.Delete(ctx, "/duties/"+share+"/members/"+member, recipe.AnyVersion))
			}
		}
	}
	// ours is the worker among our members; "" stands for a member of an earlier release.
	ours := func(owner string) string {
		if slices.Contains(all, owner) {
			return owner
		}
		return ""
	}

	leave := earlier("old", "paths", d.shares)
	with := append(slices.Clone(all), "old")
	d.divided("the release before joins", func(folder string) string { return ours(recipe.Owner(with, folder+"/duty")) })
	leave()
	d.spread("the release before has left", 4, 4, 4)

	first := ""
	for i := 0; first == "" || recipe.Owner(append(slices.Clone(all), first), "duty") != first; i++ {
		first = fmt.Sprintf("first%02d", i) // the first release hashes names: all shares fall to one member
	}
	had := maps.Clone(d.workers)
	leave = earlier(first, "", d.shares[:6])
	d.divided("the first release has half of the shares", func(folder string) string {
		if folder < "/duties/"+d.shares[6] {
			return ""
		}
		return had[folder[len("/duties/"):]]
	})
	leave()
	d.spread("the first release has left", 4, 4, 4)
}

// calm is a clock whose waits of three seconds end by hand.
type calm struct {
	mu    sync.Mutex
	waits []*calmWait
}

type calmWait struct {
	of   *calm
	end  func()
	over bool
}

func (*calm) Now() time.Time { return time.Now() }

func (c *calm) AfterFunc(d time.Duration, f func()) clock.Stopper {
	if d != 3*time.Second {
		return time.AfterFunc(d, f)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &calmWait{of: c, end: f}
	c.waits = append(c.waits, w)
	return w
}

func (w *calmWait) Stop() bool {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	was := w.over
	w.over = true
	return !was
}

// waiting returns the wait that has neither ended nor been stopped, or nil.
func (c *calm) waiting() *calmWait {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.waits {
		if !w.over {
			return w
		}
	}
	return nil
}

// end ends all waits until the members work some numbers of shares.
func (c *calm) end(d *duties, why string, want ...int) {
	d.t.Helper()
	zktest.Eventually(d.t, func() bool {
		if w := c.waiting(); w != nil && w.Stop() {
			go w.end()
		}
		return slices.Equal(d.loads(), want)
	}, "%s: the members work %v shares", why, want)
}

// TestMembersWaitForCalm: shares are divided three seconds after the last change. Each change begins
// the wait again.
func TestMembersWaitForCalm(t *testing.T) {
	t.Parallel()
	d, c := newDuties(t, 4), &calm{}
	d.join("nl01", func(cfg *recipe.Config) { cfg.Clock = clock.From(c) })
	zktest.Eventually(t, func() bool { return c.waiting() != nil }, "the member waits for three seconds")
	if got := d.loads(); len(got) > 0 {
		t.Errorf("shares are taken before the membership was calm: %v", got)
	}
	c.end(d, "three seconds after the member joined", 4)

	s := session(t, dial(t, d.root))
	var last *calmWait
	for i, other := range []string{"nl02", "nl03"} {
		data := fmt.Sprintf(`["labels/label-%02d"]`, i)
		_, err := s.Create(t.Context(), "/duties/members/"+other, []byte(data), recipe.Ephemeral)
		must(t, err)
		zktest.Eventually(t, func() bool {
			w := c.waiting()
			begins := w != nil && w != last
			if begins {
				last = w
			}
			return begins
		}, "%s joins: the wait begins again", other)
		if got := d.loads(); !slices.Equal(got, []int{4}) {
			t.Errorf("shares move before the membership was calm: %v", got)
		}
	}
	c.end(d, "three seconds after the last has joined", 2)
}
