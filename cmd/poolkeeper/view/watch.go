package view

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/recipe"
)

// Watching is the flag of listings that can be followed.
type Watching struct {
	Watch bool `short:"w" help:"Go on with what changes, until Ctrl-C: on a terminal the table is kept up to date, else lines are added."`
}

// Watched is what a listing that is followed is made of.
type Watched struct {
	Parts zkmodel.Part
	Roots []Root                  // beside those; may be none
	Begin func(m *zkmodel.Mirror) // before the mirror is read; may be nil
	Table func(m *zkmodel.Mirror, now time.Time) *listing.Table
	// Read takes the place of Table where something must be read anew at each change.
	Read func(ctx context.Context, m *zkmodel.Mirror, s *recipe.Session, now time.Time) (*listing.Table, error)
}

// rest is how long after a change no other is shown: many come together.
const rest = 100 * time.Millisecond

// errForm is for a form that has no end, and none that goes on.
var errForm = errors.New("--watch goes with -o table, wide and json-v1 only")

// Follow shows a listing, and what changes in it, until ctx ends. It follows the tree by watches,
// from one session to the next; that a session is lost is told.
//
// Errors: those of Show, before anything is shown.
func (f Flags) Follow(ctx context.Context, a *app.App, client *recipe.Client, w Watched, filters ...Filter) error {
	if f.Output != "table" && f.Output != "wide" && f.Output != "json-v1" {
		return errForm
	}
	s := newShower(f, a)
	return w.loop(ctx, s, client, rest, func(mirror *zkmodel.Mirror) func() error {
		made, arrange := reader{watched: w, mirror: mirror, client: client}, f.Arrange
		return func() error {
			table, err := made.table(ctx, time.Now())
			if err == nil {
				err = arrange(table, filters...)
			}
			if err != nil {
				return err
			}
			arrange = f.rearrange
			return s.show(table)
		}
	})
}

// loop calls what start returns, and again when something has changed of what w names, at most once in a while, until
// ctx ends. start is given the mirror once it has been read.
func (w Watched) loop(ctx context.Context, s *shower, client *recipe.Client, once time.Duration, start func(*zkmodel.Mirror) func() error) error {
	following, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	wake := make(chan struct{}, 1)
	mirror, synced := w.begin(following, &group, client, wake)
	group.Go(func() { s.followSession(following, client, wake) })
	if err := synced(ctx); err != nil {
		return unlessOver(ctx, err)
	}
	tick := time.NewTicker(app.TellTerminal)
	defer tick.Stop()
	for show := start(mirror); ctx.Err() == nil; s.await(ctx, once, wake, tick.C) {
		if err := show(); err != nil {
			return unlessOver(ctx, err)
		}
	}
	return nil
}

// unlessOver is an error, but of what ended because ctx did: that is how one stops to follow.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// begin follows what a listing is made of until ctx ends, and wakes for each change. synced waits until all is there.
func (w Watched) begin(ctx context.Context, group *sync.WaitGroup, client *recipe.Client, wake chan<- struct{}) (*zkmodel.Mirror, func(context.Context) error) {
	mirror := zkmodel.NewMirror(client, w.Parts, hclog.NewNullLogger())
	if w.Begin != nil {
		w.Begin(mirror)
	}
	for _, changes := range subscribe(mirror, w.Parts) {
		group.Go(func() { awaken(ctx, changes, wake) })
	}
	group.Go(func() { _ = mirror.Run(ctx) }) // it ends with ctx
	synced := follow(ctx, group, client, w.Roots, wake)
	return mirror, func(ctx context.Context) error { return cmp.Or(mirror.WaitSynced(ctx), synced(ctx)) }
}

// rearrange is Arrange for a table that comes later: what there was may be gone.
func (f Flags) rearrange(table *listing.Table, filters ...Filter) error {
	for _, one := range filters {
		table.Filter(one.by, one.values)
	}
	if f.Sort == "" {
		return nil
	}
	return table.Sort(f.Sort)
}

// subscribe listens to all changes of some parts.
func subscribe(m *zkmodel.Mirror, parts zkmodel.Part) (all []*recipe.Subscription) {
	if parts&zkmodel.PartImages != 0 {
		all = append(all, m.SubscribeImages(), m.SubscribePausedBy(), m.SubscribeVerdicts(), m.SubscribeCanaries(), m.SubscribeValidations(), m.SubscribePauses())
	}
	if parts&zkmodel.PartNodes != 0 {
		all = append(all, m.SubscribeNodes())
	}
	if parts&zkmodel.PartRequests != 0 {
		all = append(all, m.SubscribeRequests())
	}
	if parts&zkmodel.PartComponents != 0 {
		all = append(all, m.SubscribeComponents())
	}
	return all
}

// awaken wakes for each change, until ctx ends.
func awaken(ctx context.Context, changes *recipe.Subscription, wake chan<- struct{}) {
	defer changes.Close()
	for {
		select {
		case <-changes.C():
			changes.Take()
			poke(wake)
		case <-ctx.Done():
			return
		}
	}
}

// poke wakes, unless that is done already.
func poke(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// shower shows one table after another.
type shower struct {
	flags    Flags
	app      *app.App
	terminal bool
	begun    bool
	changes  listing.Follower
	told     string // of what is broken

	mu   sync.Mutex
	lost bool // the session
}

// newShower shows on the app's stdout.
func newShower(f Flags, a *app.App) *shower {
	_, _, terminal := app.Screen(a.Stdout)
	return &shower{flags: f, app: a, terminal: terminal && !dumb() && f.Output != "json-v1"}
}

// The words about a session.
const (
	wordLost  = "the session of ZooKeeper is lost: what is listed may have changed; it goes on when there is another"
	wordAgain = "there is a session of ZooKeeper again"
)

// followSession tells when a session is lost, and when there is another.
func (s *shower) followSession(ctx context.Context, client *recipe.Client, wake chan<- struct{}) {
	for {
		session, err := client.Session(ctx)
		if err != nil {
			return
		}
		s.setLost(false)
		poke(wake)
		select {
		case <-session.Context().Done():
		case <-ctx.Done():
			return
		}
		if ctx.Err() != nil {
			return
		}
		s.setLost(true)
		poke(wake)
	}
}

// setLost notes that the session is lost, or that there is another. What is not written over
// tells it once.
func (s *shower) setLost(lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == lost {
		return
	}
	s.lost = lost
	if !s.terminal {
		fmt.Fprintln(s.app.Stderr, "poolkeeper:", map[bool]string{true: wordLost, false: wordAgain}[lost])
	}
}

// show shows the table as it is now.
func (s *shower) show(table *listing.Table) error {
	if s.terminal {
		return s.redraw(table)
	}
	if told := fmt.Sprint(table.Broken()); told != s.told {
		s.told = told
		s.app.TellBroken(table.Broken())
	}
	changes, err := s.changes.Next(table)
	if err != nil {
		return err
	}
	now := time.Now()
	begun := s.begun
	s.begun = true
	switch {
	case s.flags.Output == "json-v1":
		return table.WriteChanges(s.app.Stdout, changes, now)
	case !begun:
		return table.WriteText(s.app.Stdout, s.flags.detailed())
	}
	return s.changes.WriteLines(s.app.Stdout, table, changes, s.flags.detailed())
}

// redraw writes over what the terminal shows, as many lines as it has.
func (s *shower) redraw(table *listing.Table) error {
	columns, _, _ := app.Screen(s.app.Stdout)
	var text bytes.Buffer
	if err := table.WriteScreen(&text, listing.Screen{Width: columns, Colour: coloured(), Detail: s.flags.detailed()}); err != nil {
		return err
	}
	var notes []string
	if n := len(table.Broken()); n > 0 {
		notes = append(notes, fmt.Sprintf("%d records or lists of them cannot be read or decoded and show as broken", n))
	}
	return s.draw(text.String(), notes...)
}

// draw writes a text over what the terminal shows, as many lines as it has, and notes below it.
func (s *shower) draw(text string, notes ...string) error {
	columns, rows, _ := app.Screen(s.app.Stdout)
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n")+"\n", "\n")
	lines = lines[:len(lines)-1]
	s.mu.Lock()
	if s.lost {
		notes = append(notes, wordLost)
	}
	s.mu.Unlock()
	if room := rows - 2 - len(notes); rows > 0 && room > 0 && len(lines) > room {
		notes = append(notes, fmt.Sprintf("%d more lines have no room", len(lines)-room))
		lines = lines[:room]
	}
	out := &bytes.Buffer{}
	out.WriteString("\x1b[H")
	if !s.begun {
		s.begun = true
		out.WriteString("\x1b[2J")
	}
	for _, line := range lines {
		out.WriteString(strings.TrimSuffix(line, "\n") + "\x1b[K\n")
	}
	for _, note := range notes {
		out.WriteString(listing.Fit("poolkeeper: "+note, columns) + "\x1b[K\n")
	}
	out.WriteString("\x1b[J")
	_, err := s.app.Stdout.Write(out.Bytes())
	return err
}

// await returns at the next change, a moment of rest after the one before, and on a terminal each
// second: ages go on.
func (s *shower) await(ctx context.Context, rest time.Duration, wake <-chan struct{}, tick <-chan time.Time) {
	if !s.terminal {
		tick = nil
	}
	pause := time.NewTimer(rest)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return
	}
	select {
	case <-wake:
	case <-tick:
	case <-ctx.Done():
	}
}
