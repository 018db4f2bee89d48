package listing

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// gone is what stands for the state of what is not listed any more.
const gone = "gone"

// Follower tells what changes from one table of a listing to the next. That time goes by is
// no change.
type Follower struct {
	rows   map[string]followed
	order  []string
	widths map[int]int // of columns, as they were printed last
}

// followed is a row as it was last.
type followed struct {
	cells []cell
	says  string // as a document says it, which has no ages
}

// Change is a row that is new or says something else, or one that is gone.
type Change struct {
	Gone  bool
	cells []cell
}

// Next are the changes since the table before; at first, all rows.
func (f *Follower) Next(t *Table) ([]Change, error) {
	var changes []Change
	now, order := map[string]followed{}, []string{}
	for _, row := range t.rows {
		var says strings.Builder
		out := bufio.NewWriter(&says)
		if err := t.item(out, row); err != nil {
			return nil, err
		}
		_ = out.Flush() // a Builder takes all
		name := t.name(row)
		for n := 2; now[name].cells != nil; n++ { // of a daemon with several shares
			name = t.name(row) + " " + strconv.Itoa(n)
		}
		one := followed{row, says.String()}
		if f.rows[name].says != one.says {
			changes = append(changes, Change{cells: row})
		}
		now[name], order = one, append(order, name)
	}
	for _, name := range f.order {
		if now[name].cells == nil {
			changes = append(changes, Change{Gone: true, cells: f.rows[name].cells})
		}
	}
	f.rows, f.order = now, order
	return changes, nil
}

// WriteLines writes changes as lines of the table that WriteText writes. What is gone shows
// as that in place of its state, or right behind its name.
func (f *Follower) WriteLines(w io.Writer, t *Table, changes []Change, detail bool) error {
	g := t.grid(utf8.RuneCountInString, func(c column) bool { return c.title != "" && (detail || !c.detail) })
	if f.widths == nil {
		f.widths = map[int]int{}
	}
	for i, at := range g.columns {
		f.widths[at] = max(f.widths[at], g.widths[i])
	}
	state := slices.IndexFunc(t.columns, func(c column) bool { return c.by == ByState })
	if state < 0 {
		state = 1
	}
	out := bufio.NewWriter(w)
	for _, change := range changes {
		for _, at := range g.columns {
			text := change.cells[at].text
			if change.Gone && at == state {
				text = gone
			}
			out.WriteString("| " + text + strings.Repeat(" ", max(0, f.widths[at]-utf8.RuneCountInString(text))+1))
		}
		out.WriteString("|\n")
	}
	return out.Flush()
}

// WriteChanges writes changes as documents of ours, a line each: what kind, when, whether the
// item is or is gone, and the item.
func (t *Table) WriteChanges(w io.Writer, changes []Change, now time.Time) error {
	out := bufio.NewWriter(w)
	for _, c := range changes {
		word := "is"
		if c.Gone {
			word = gone
		}
		fmt.Fprintf(out, `{"version": %q, "kind": %q, "time": %q, "change": %q, "item": `, Version, t.kind, now.UTC().Format(time.RFC3339), word)
		if err := t.item(out, c.cells); err != nil {
			return err
		}
		out.WriteString("}\n")
	}
	return out.Flush()
}
