package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs/clock"
	"poolkeeper/configs/kit"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/manage"
)

// pausable is a daemon that can be told to begin nothing new.
type pausable interface {
	Pause(why string)
	InHand() (what string, known bool)
	// Finish reports whether one that is paused has nothing in hand. If so it takes nothing
	// in hand from then on, until Pause is called.
	Finish() bool
}

// managed is a running daemon as operators' commands reach it.
type managed struct {
	s     site
	d     daemon
	stop  context.CancelFunc // has the daemon end as a signal does
	began time.Time

	mu     sync.Mutex
	drains context.CancelFunc // of a drain that is under way; nil when none is
	ends   *time.Timer        // of a pause that ends by itself; nil when none does
}

// newProcess is the process of a daemon, as its record tells of it.
func newProcess() *zkmodel.Process {
	p := zkmodel.NewProcess(nil)
	p.ID, p.Commands = kit.RandomHex(8), slices.Sorted(maps.Keys((&managed{}).verbs()))
	return p
}

// run takes commands until ctx ends.
func (m *managed) run(ctx context.Context) {
	agent := &manage.Agent{Client: m.s.client, Instance: m.s.process.ID, Verbs: m.verbs(), Log: m.s.log.Named("commands")}
	for ctx.Err() == nil {
		if err := agent.Run(ctx); ctx.Err() == nil {
			m.s.log.Warn("Operators' commands are not taken; it is tried again", "error", err, "retry", time.Second)
			_ = clock.Sleep(ctx, time.Second) // or ctx has ended, which is looked at
		}
	}
	m.resume() // what drains ends with us
}

// signalled does what Nodepool's daemons do at signals, until ctx ends: SIGUSR1 stops this one
// as SIGINT does, SIGUSR2 logs what each goroutine is at.
func (m *managed) signalled(ctx context.Context) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-signals:
			if s == syscall.SIGUSR2 {
				m.dump()
				continue
			}
			m.s.log.Info("The daemon stops, as SIGUSR1 wants it")
			m.stop()
		}
	}
}

func (m *managed) verbs() map[string]manage.Verb {
	plainIn := func(do func(context.Context, manage.Command) (string, error)) manage.Verb {
		return func(ctx context.Context, c manage.Command) (string, func(), error) {
			if c.Argument != "" && c.Verb != app.VerbLogLevel {
				return "", nil, fmt.Errorf("argument %q: expected none", c.Argument)
			}
			text, err := do(ctx, c)
			return text, nil, err
		}
	}
	plain := func(do func(manage.Command) (string, error)) manage.Verb {
		return plainIn(func(_ context.Context, c manage.Command) (string, error) { return do(c) })
	}
	return map[string]manage.Verb{
		app.VerbWho:      plain(func(manage.Command) (string, error) { return m.who(), nil }),
		app.VerbLogLevel: plain(m.logLevel),
		app.VerbDump:     plain(func(manage.Command) (string, error) { return m.dump(), nil }),
		app.VerbResume: plainIn(func(ctx context.Context, c manage.Command) (string, error) {
			if m.s.process.Paused() != "" {
				m.tell(ctx, event.DaemonResumed, c)
			}
			return m.unpause(), nil
		}),
		app.VerbPause: func(ctx context.Context, c manage.Command) (string, func(), error) {
			text, err := m.pause(ctx, c)
			if err == nil {
				m.tell(ctx, event.DaemonPaused, c)
			}
			return text, nil, err
		},
		app.VerbReload: func(ctx context.Context, _ manage.Command) (string, func(), error) {
			text, err := m.reload(ctx)
			return text, nil, err
		},
		app.VerbDrain: func(ctx context.Context, c manage.Command) (string, func(), error) {
			text, err := m.pause(ctx, c)
			if err != nil {
				return "", nil, err
			}
			m.tell(ctx, event.DaemonStopping, c)
			draining := m.beginDrain(ctx) // before the answer: a resume that follows it ends this
			return "stops when nothing is in hand; " + text, func() { m.drain(draining) }, nil
		},
		app.VerbStop: func(ctx context.Context, c manage.Command) (string, func(), error) {
			m.tell(ctx, event.DaemonStopping, c)
			return "stops now", m.stop, nil
		},
	}
}

// tellTime is how long a command may wait for its event.
const tellTime = 5 * time.Second

// tell tells what a person did with this daemon, where there are events. The command is done
// all the same.
func (m *managed) tell(ctx context.Context, kind string, c manage.Command) {
	if m.s.client.Log() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTime)
	defer cancel()
	session, err := m.s.client.Session(ctx)
	if err == nil {
		err = zkmodel.NewStore(session, nil).Tell(ctx, kind, "daemon/"+c.Kind+"/"+c.Host, event.Data{
			"host": c.Host, "kind": c.Kind, "process": c.Instance, "command": c.Verb, "for": c.Argument, "reason": c.Reason, "by": c.By,
		})
	}
	if err != nil {
		m.s.log.Warn("What was done with this daemon is not told as an event", "command", c.Verb, "error", err)
	}
}

// who says which process answers.
func (m *managed) who() string {
	text := fmt.Sprintf("version %s, pid %d, up %s, log level %s, configuration %s",
		app.Version, os.Getpid(), time.Since(m.began).Round(time.Second), m.s.log.GetLevel(), m.s.watch.path())
	if why := m.s.process.Paused(); why != "" {
		text += ", " + why
	}
	return text
}

// logLevel changes how much is logged, until the daemon ends.
func (m *managed) logLevel(c manage.Command) (string, error) {
	level := hclog.LevelFromString(c.Argument)
	if level == hclog.NoLevel || level == hclog.Off {
		return "", fmt.Errorf("log level %q: expected trace, debug, info, warn or error", c.Argument)
	}
	was := m.s.log.GetLevel()
	m.s.log.SetLevel(level)
	return fmt.Sprintf("logs %s, was %s", level, was), nil
}

// maxStacks bounds a dump, in bytes.
const maxStacks = 1 << 20

// dump logs what each goroutine is at.
func (m *managed) dump() string {
	stacks := make([]byte, maxStacks)
	stacks = stacks[:runtime.Stack(stacks, true)]
	n := strings.Count(string(stacks), "\n\n") + 1
	m.s.log.Info("Goroutines of this daemon", "stacks", string(stacks))
	return fmt.Sprintf("%d goroutines are in its log", n)
}

// errNoPause is the answer of a daemon that knows no pause.
var errNoPause = errors.New("this daemon cannot be paused")

// pauseTime is how long a daemon has, at most, to say what it has in hand.
const pauseTime = 5 * time.Second

// pause has the daemon begin nothing new.
func (m *managed) pause(ctx context.Context, c manage.Command) (string, error) {
	d, ok := m.d.(pausable)
	if !ok {
		return "", errNoPause
	}
	length, err := pauseLength(c)
	if err != nil {
		return "", err
	}
	m.resume()
	m.pauseFor(d, c, length) //nolint:contextcheck // what tells of its end outlives the command
	ctx, cancel := context.WithTimeout(ctx, pauseTime)
	defer cancel()
	now, known := d.InHand()
	for !known && clock.Sleep(ctx, drainEvery/4) == nil {
		now, known = d.InHand()
	}
	switch {
	case !known:
		return "begins nothing new; what is in hand is not known yet", nil
	case now != "":
		return "begins nothing new; in hand: " + now, nil
	}
	return "begins nothing new", nil
}

// pauseLength is how long a command wants a daemon to be paused; 0 is until it is told to go on.
func pauseLength(c manage.Command) (time.Duration, error) {
	if c.Argument == "" {
		return 0, nil
	}
	length, err := time.ParseDuration(c.Argument)
	switch {
	case c.Verb != app.VerbPause:
		return 0, fmt.Errorf("argument %q: expected none", c.Argument)
	case err != nil || length <= 0:
		return 0, fmt.Errorf("%q is no time that a pause can last", c.Argument)
	}
	return length, nil
}

// pauseFor pauses a daemon, for a time, or with 0 until it is told to go on.
func (m *managed) pauseFor(d pausable, c manage.Command, length time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	why := "paused by " + c.By
	if c.Reason != "" {
		why += ": " + c.Reason
	}
	if length > 0 {
		why += ", until " + time.Now().Add(length).UTC().Format(time.RFC3339)
		var own *time.Timer
		own = time.AfterFunc(length, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.ends == own { // else another word was said meanwhile
				m.ends = nil
				m.s.log.Info("The pause is over; the daemon goes on", "why", why)
				d.Pause("")
				go m.tell(context.Background(), event.DaemonResumed, manage.Command{
					Verb: app.VerbResume, Reason: "its time is over", By: c.By, Instance: c.Instance, Host: c.Host, Kind: c.Kind,
				})
			}
		})
		m.ends = own
	}
	d.Pause(why)
}

// unpause has it go on.
func (m *managed) unpause() string {
	m.resume()
	was := m.s.process.Paused()
	if d, ok := m.d.(pausable); ok {
		d.Pause("")
	}
	if was == "" {
		return "was not paused"
	}
	return "goes on, was " + was
}

// resume ends a drain that is under way, and forgets when a pause ends.
func (m *managed) resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ends != nil {
		m.ends.Stop()
		m.ends = nil
	}
	if m.drains != nil {
		m.drains()
		m.drains = nil
	}
}

// drainEvery is how often it is looked whether a daemon is done.
const drainEvery = 200 * time.Millisecond

// beginDrain is what a drain lives by, until resume ends it.
func (m *managed) beginDrain(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drains = cancel
	return ctx
}

// drain stops a daemon that is paused, once nothing is in hand in two looks.
func (m *managed) drain(ctx context.Context) {
	d := m.d.(pausable) //nolint:forcetypeassert // pause has seen that it is
	go func() {
		for idle := 0; idle < 2 || !d.Finish(); idle++ {
			if now, known := d.InHand(); !known || now != "" {
				idle = -1
			}
			if clock.Sleep(ctx, drainEvery) != nil {
				return
			}
		}
		m.s.log.Info("Nothing is in hand any more; the daemon stops, as an operator wants it")
		m.stop()
	}()
}

// reload reads the configuration again, whether it has changed or not.
func (m *managed) reload(ctx context.Context) (string, error) {
	if err := m.s.watch.look(ctx, true); err != nil {
		return "", err
	}
	text := m.s.watch.path() + " is in effect"
	if guarded := m.s.guarded.texts(); len(guarded) > 0 {
		text += ", but for what stays as it was: " + strings.Join(guarded, "; ")
	}
	return text, nil
}
