package overview

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

const (
	restful  = 5 * time.Minute        // without a question, after which nothing is followed any more
	renewed  = 30 * time.Second       // how old what nobody tells of may be: the time goes on
	between  = 200 * time.Millisecond // the least time from one reading to the next
	breather = 10                     // times as long as a reading took, until the next
	reads    = 10 * time.Second       // one reading at most
	firstly  = time.Second            // how long a question waits for the first reading
)

// Follower has what of the tree the mirror of a daemon does not have, for pages. As long as
// a page asks, it follows that part of the tree, and reads it again when it has changed; a daemon
// of which no page is open reads nothing.
type Follower struct {
	client *recipe.Client
	log    hclog.Logger
	tell   recipe.Throttle
	wake   chan struct{} // a page asks

	mu       sync.Mutex
	asked    time.Time
	last     *Beside
	read     time.Time     // when last was
	done     chan struct{} // closed after the next reading
	watchers map[chan struct{}]struct{}
}

// NewFollower makes a Follower; it works while Run runs.
func NewFollower(client *recipe.Client, log hclog.Logger) *Follower {
	return &Follower{client: client, log: log, wake: make(chan struct{}, 1), done: make(chan struct{}), watchers: map[chan struct{}]struct{}{}}
}

// Run does the work until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	for {
		select {
		case <-f.wake:
			f.follow(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Look is what there is. Where nothing is known yet it waits a moment for the first reading, and
// is nil if that does not come.
func (f *Follower) Look() *Beside {
	last, done := f.ask()
	if last != nil {
		return last
	}
	wait := time.NewTimer(firstly)
	defer wait.Stop()
	select {
	case <-done:
	case <-wait.C:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// ask notes that a page asks. What is not there, or is old, is read.
func (f *Follower) ask() (last *Beside, done <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = time.Now()
	if f.last == nil || f.asked.Sub(f.read) > renewed {
		select {
		case f.wake <- struct{}{}:
		default: // it is told already
		}
	}
	return f.last, f.done
}

// Watch calls changed whenever something else is there, until ctx ends. What is shown then is
// what Look has.
func (f *Follower) Watch(ctx context.Context, changed func()) {
	news := make(chan struct{}, 1)
	f.mu.Lock()
	f.watchers[news] = struct{}{}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, news)
	}()
	f.ask()
	for {
		select {
		case <-news:
			changed()
		case <-ctx.Done():
			return
		}
	}
}

// WatchSession calls changed whenever the session with ZooKeeper ends, and when there is another, until
// ctx ends: what pages show is old meanwhile.
func (f *Follower) WatchSession(ctx context.Context, changed func()) {
	known := f.client.State().Alive
	_ = f.client.Serve(ctx, func(ctx context.Context, _ *recipe.Session) error { // it ends with ctx, or with the client
		if !known {
			changed()
		}
		known = false
		<-ctx.Done()
		changed()
		return context.Cause(ctx)
	})
}

// follow reads, and reads again after each change, until nobody has asked for long.
func (f *Follower) follow(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	tree := recipe.NewTree(f.client, zkmodel.OwnRoot, recipe.TreeOptions{Filter: besideInterest, Logger: f.log})
	sub := tree.Subscribe(nil)
	var running sync.WaitGroup
	running.Go(func() { _ = tree.Run(ctx) }) // it ends with ctx, or with the client
	defer func() {
		stop()
		running.Wait()
		sub.Close()
	}()
	rest := time.NewTicker(restful)
	defer rest.Stop()
	for ctx.Err() == nil {
		began := time.Now()
		f.renew(ctx)
		pause := time.NewTimer(max(between, breather*time.Since(began)))
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
		for again := false; !again; {
			select {
			case <-sub.C():
				sub.Take()
				again = true
			case <-f.wake:
				again = true
			case <-rest.C:
				if f.rests() {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// rests reports whether nobody has asked for long; then nothing is known any more.
func (f *Follower) rests() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.watchers) > 0 || time.Since(f.asked) < restful {
		return false
	}
	f.last = nil
	return true
}

// renew reads once, and tells of it. What could be read before stays where that fails.
func (f *Follower) renew(ctx context.Context) {
	reading, cancel := context.WithTimeout(ctx, reads)
	defer cancel()
	var beside *Beside
	session, err := f.client.Session(reading)
	if err == nil {
		beside, err = ReadBeside(reading, session)
	}
	if err != nil {
		if ctx.Err() == nil {
			f.tell.Warn(f.log, "Waves, the fleet and limits cannot be read for pages; they show what was there", "error", err)
		}
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last, f.read = beside, time.Now()
	close(f.done)
	f.done = make(chan struct{})
	for news := range f.watchers {
		select {
		case news <- struct{}{}:
		default: // it is told already
		}
	}
}

// besideInterest says which changes are noticed.
func besideInterest(p string) recipe.Interest {
	for _, one := range []struct {
		folder   string
		interest recipe.Interest // in what is right below it
		deeper   recipe.Interest // and below that
	}{
		{wave.Root + "/requests", recipe.Data | recipe.Children, recipe.Data},
		{wave.Root + "/status", recipe.Data, recipe.None},
		{fleet.MembersPath, recipe.Data, recipe.None},
		{zkmodel.LimitsRoot, recipe.Data, recipe.None},
		{event.Root + "/dead", recipe.Children, recipe.None},
	} {
		rest, below := strings.CutPrefix(p, one.folder+"/")
		switch {
		case p == one.folder:
			return recipe.Children
		case below && !strings.Contains(rest, "/"):
			return one.interest
		case below && strings.Count(rest, "/") == 1:
			return one.deeper
		case below:
			return recipe.None
		}
	}
	switch p {
	case zkmodel.OwnRoot, wave.Root, event.Root, strings.TrimSuffix(fleet.MembersPath, "/members"):
		return recipe.Children
	case wave.HoldPath, fleet.CurrentPath:
		return recipe.Data
	}
	return recipe.None
}
