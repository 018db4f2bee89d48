package stage

import (
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
	lines  []string
	wrongs []string
	counts map[string]int
}

// NewTimeline begins one, now.
func NewTimeline() *Timeline { return &Timeline{began: time.Now(), counts: map[string]int{}} }

// Age is how long the world has been there.
func (t *Timeline) Age() time.Duration { return time.Since(t.began) }

// Note adds a line.
func (t *Timeline) Note(who, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(who, format, args...)
}

func (t *Timeline) add(who, format string, args ...any) {
	t.lines = append(t.lines, fmt.Sprintf("%12.6fs %-8s %s", t.Age().Seconds(), who, fmt.Sprintf(format, args...)))
}

// Wrong adds what must never be.
func (t *Timeline) Wrong(who, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(who, "WRONG: "+format, args...)
	t.wrongs = append(t.wrongs, t.lines[len(t.lines)-1])
}

// Fault adds a fault that is made, and counts it.
func (t *Timeline) Fault(fault, who, format string, args ...any) {
	t.Note(who, "FAULT "+fault+" "+format, args...)
	t.Count(fault)
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
	return slices.Clone(t.lines)
}

// Wrongs are those of the lines that must never be.
func (t *Timeline) Wrongs() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.wrongs)
}

// LeadUp are the lines before the first wrong, as far as they matter; "" without one.
func (t *Timeline) LeadUp() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.wrongs) == 0 {
		return ""
	}
	i := slices.Index(t.lines, t.wrongs[0])
	return strings.Join(t.lines[max(0, i-shownLines):i+1], "\n")
}

// Sorted are counts, for reports.
func Sorted(counts map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(list, ", ")
}
