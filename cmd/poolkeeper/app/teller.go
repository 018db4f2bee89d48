package app

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// How often what takes long says that it goes on: where lines stay, and on a
// terminal, where one line is written over and over.
const (
	tellLines    = 5 * time.Second
	TellTerminal = time.Second
)

// Teller says, on the way, what a command waits for.
type Teller struct {
	out      io.Writer
	terminal bool
	every    time.Duration // of lines

	mu     sync.Mutex
	text   string // what was said last
	since  time.Time
	saidAt time.Time
}

// NewTeller tells on out, which may be a terminal.
func NewTeller(out io.Writer) *Teller {
	return &Teller{out: out, terminal: isTerminal(out), every: tellLines}
}

// isTerminal tells whether lines can be written over.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// Say tells a state: at once when it is a new one, and again from time to time,
// with its age.
func (t *Teller) Say(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	changed := text != t.text
	if changed {
		t.text, t.since = text, now
	}
	again := t.every
	if t.terminal {
		again = TellTerminal
	}
	if !changed && now.Sub(t.saidAt) < again {
		return
	}
	t.saidAt = now
	age := ""
	if seconds := now.Sub(t.since).Round(time.Second); seconds > 0 {
		age = fmt.Sprintf(" (%s)", seconds)
	}
	if t.terminal {
		fmt.Fprintf(t.out, "\r\x1b[Kpoolkeeper: %s%s", text, age)
		return
	}
	fmt.Fprintf(t.out, "poolkeeper: %s%s\n", text, age)
}

// End leaves the terminal's line to what comes next.
func (t *Teller) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.terminal && t.text != "" {
		fmt.Fprint(t.out, "\r\x1b[K")
	}
	t.text = ""
}

// During tells what state says while something runs, until the returned function is
// called. What is done within a moment is not told.
func (t *Teller) During(state func() string) (done func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(TellTerminal)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				t.Say(state())
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
		t.End()
	}
}
