package stage

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// shownLines is how many lines of a timeline lead up to what was wrong.
const shownLines = 60

// Timeline is what has happened in a world: who did what, when, and what was wrong of it.
type Timeline struct {
	mu     sync.Mutex // for moments
	began  time.Time
	lines  []line
	wrongs []int // places in lines
	counts map[string]int
	fault  int // that is being made
	faults []int
}

// line is one of the timeline. It is put into words when it is shown: most never are.
type line struct {
	at          time.Duration
	who, format string
	args        []any
}

func (l line) String() string {
	return strings.TrimRight(fmt.Sprintf("%12.6fs %-8s %s", l.at.Seconds(), l.who, fmt.Sprintf(l.format, l.args...)), " ")
}

// NewTimeline begins one, now.
func NewTimeline() *Timeline { return &Timeline{began: time.Now(), counts: map[string]int{}} }

// Age is how long the world has been there.
func (t *Timeline) Age() time.Duration { return time.Since(t.began) }

// Note adds a line. What args hold must not change later, but for errors.
func (t *Timeline) Note(who, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(who, format, args)
}

func (t *Timeline) add(who, format string, args []any) {
	for i, arg := range args {
		if err, is := arg.(error); is {
			args[i] = err.Error() // what it wraps may be in use still
		}
	}
	t.lines = append(t.lines, line{t.Age(), who, format, args})
}

// Wrong adds what must never be.
func (t *Timeline) Wrong(who, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrongs = append(t.wrongs, len(t.lines))
	t.add(who, "WRONG: "+format, args)
}

// Turn tells the number of the fault that is to be made next.
func (t *Timeline) Turn(fault int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault = fault
}

// Fault adds a fault that is made, and counts it.
func (t *Timeline) Fault(fault, who, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = append(t.faults, t.fault)
	t.counts[fault]++
	t.add(who, "FAULT %d: "+fault+" "+format, append([]any{t.fault}, args...))
}

// Faults are the numbers of the faults that were made.
func (t *Timeline) Faults() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(t.faults)))
}

// Count counts something.
func (t *Timeline) Count(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what]++
}

// Counts are how often each was counted.
func (t *Timeline) Counts() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}

// Lines are all that were added.
func (t *Timeline) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return words(t.lines)
}

// Wrongs are those of the lines that must never be.
func (t *Timeline) Wrongs() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []string
	for _, at := range t.wrongs {
		list = append(list, t.lines[at].String())
	}
	return list
}

// Failed reports whether anything was wrong.
func (t *Timeline) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.wrongs) > 0
}

// LeadUp are the lines before the first wrong, as far as they matter; "" without one.
func (t *Timeline) LeadUp() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.wrongs) == 0 {
		return ""
	}
	at := t.wrongs[0]
	return strings.Join(words(t.lines[max(0, at-shownLines):at+1]), "\n")
}

// Hash tells one timeline from another: the same one has the same.
func (t *Timeline) Hash() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := sha256.New()
	for _, l := range t.lines {
		_, _ = fmt.Fprintln(h, l)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16])
}

func words(lines []line) []string {
	list := make([]string, len(lines))
	for i, l := range lines {
		list[i] = l.String()
	}
	return list
}

// Sorted are counts, for reports.
func Sorted(counts map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(list, ", ")
}
