package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"poolkeeper/test/zuul"
)

// starving is how long a request may go without an answer. More urgent ones come
// first, however many there are and whatever is killed meanwhile; so the others have
// more patience, but none of them is forgotten.
func (w wish) starving() time.Duration {
	base := map[int]time.Duration{100: 90 * time.Second, 200: 3 * time.Minute, 300: 6 * time.Minute}[w.Priority]
	return base * time.Duration(1+w.RelativePriority)
}

// wish is what one job asks for, and what is true of it.
type wish struct {
	zuul.Wish
	patient bool   // it waits for its nodes and uses them
	plain   bool   // its time counts when priorities are compared
	fails   string // what the reason of its failure says; "" if it can be served
}

// wish draws one. Most are not urgent: the few that are leave room for them, or
// strict priority alone could keep them waiting.
func (c *customer) wish() wish {
	w := wish{Wish: zuul.Wish{
		Priority: []int{100, 200, 200, 200, 300, 300, 300, 300, 300, 300}[c.r.IntN(10)], Fresh: c.r.IntN(3) == 0,
		Provider: []string{"", "", "east", "west", "nowhere"}[c.r.IntN(5)],
		Tenant:   []string{"tenant-one", limitedTenant}[c.r.IntN(2)],
	}}
	if c.r.IntN(4) == 0 {
		w.RelativePriority = c.r.IntN(5)
	}
	switch c.r.IntN(24) {
	case 0:
		w.Labels, w.fails = []string{"small", "unicorn"}, "no pool has the label unicorn"
	case 1:
		w.Labels, w.fails = slices.Repeat([]string{"large"}, 9), "exceeds the limits of"
	case 2, 3, 4:
		w.Labels = slices.Repeat([]string{"rack"}, 1+c.r.IntN(slots))
	case 8, 9, 10, 11:
		w.Labels, w.Provider = slices.Repeat([]string{one(c.r, []string{"one", "two"})}, 1+c.r.IntN(2)), ""
	case 5, 6, 7:
		w.Labels, w.patient, w.Fresh = []string{"kept"}, true, false
	default:
		for range 1 + c.r.IntN(3) {
			w.Labels = append(w.Labels, []string{"small", "large"}[c.r.IntN(2)])
		}
		w.plain = true
	}
	return w
}

// only is the one cloud that can serve it; "" where there are several, or none with room to lie about.
func (w wish) only() string {
	switch {
	case w.patient:
		return "east" // no other has the label kept
	case w.plain && (w.Provider == "east" || w.Provider == "west"):
		return w.Provider
	default:
		return ""
	}
}

// mayFail tells what is wrong with a failure: it needs a reason, and a true one.
func (w wish) mayFail(out zuul.Outcome) error {
	want := w.fails
	if want == "" {
		// A cloud that fails now and then may fail five times in a row.
		want = "launch failed"
	}
	if !strings.Contains(out.Reason, want) {
		return fmt.Errorf("%w: request %s of %v failed because %q, want %q", errWrong, out.ID, w.Labels, out.Reason, want)
	}
	return nil
}
