package listing

import (
	"io"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Screen is a terminal that a table is shown on.
type Screen struct {
	Width  int  // in cells; 0 is any
	Colour bool // of states
	Detail bool // all columns, and no cell cut
}

// between stands between the columns of a table without lines.
const between = "  "

// WriteScreen writes the table for a terminal. One that fits is as WriteText writes it; one that
// does not has no lines around its cells and no columns in which there is nothing, and
// the widest of its cells are cut, those that tell what a row is about and its state last.
func (t *Table) WriteScreen(w io.Writer, s Screen) error {
	g := t.grid(runewidth.StringWidth, func(c column) bool { return c.title != "" && (s.Detail || !c.detail) })
	if s.Width == 0 || s.Detail || t.across(g) <= s.Width {
		return t.write(w, g, s.Colour)
	}
	g = t.grid(runewidth.StringWidth, func(c column) bool { return c.title != "" && !c.detail && !t.empty(c.key) })
	t.fit(&g, s.Width)
	return t.writePlain(w, g, s.Colour)
}

// across is how wide a table is.
func (t *Table) across(g grid) (width int) {
	for _, one := range g.widths {
		if width += one + len(between); !t.plain {
			width++ // "| " and " "
		}
	}
	if t.plain {
		return width - len(between)
	}
	return width + 1
}

// Fit is text cut to a number of cells; 0 is any.
func Fit(text string, width int) string {
	if width == 0 {
		return text
	}
	return runewidth.Truncate(text, width, "…")
}

// Folded is text as lines of no more than a number of cells, broken between words; 0 is any. A
// word that is longer has a line of its own.
func Folded(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if width > 0 && line != "" && runewidth.StringWidth(line)+1+runewidth.StringWidth(word) > width {
			lines, line = append(lines, line), ""
		}
		line = Words(" ", line, word)
	}
	return append(lines, line)
}

// empty reports whether there is nothing in a column, while there is in others.
func (t *Table) empty(key string) bool {
	at := slices.IndexFunc(t.columns, func(c column) bool { return c.key == key })
	return len(t.rows) > 0 && !slices.ContainsFunc(t.rows, func(row []cell) bool { return row[at].text != "" })
}

// fit narrows columns until they have room side by side, the widest first. Where not even
// cells of one character have, the last columns go.
func (t *Table) fit(g *grid, width int) {
	for len(g.columns) > 1 && len(g.columns)*(1+len(between))-len(between) > width {
		g.columns, g.widths = g.columns[:len(g.columns)-1], g.widths[:len(g.widths)-1]
	}
	room := width - (len(g.columns)-1)*len(between)
	sum := 0
	for _, one := range g.widths {
		sum += one
	}
	for _, least := range []struct {
		width int
		all   bool
	}{{4, false}, {4, true}, {1, true}} {
		for sum > room {
			widest := -1
			for i, at := range g.columns {
				kept := i == 0 || t.columns[at].by == ByState
				if g.widths[i] > least.width && (least.all || !kept) && (widest < 0 || g.widths[i] > g.widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			g.widths[widest]--
			sum--
		}
	}
}

// colours are those of states: what is well, what is under way, what is wrong and what goes.
var colours = map[string]string{
	"ready": "32", "in-use": "32", "fulfilled": "32", "running": "32", "completed": "32",
	"building": "33", "uploading": "33", "pending": "33", "testing": "33", "hold": "33", "held": "33", "paused": "33", "processing": "33",
	"failed": "31", "aborted": "31", broken: "31",
	"deleting": "90", "used": "90", "deleted": "90", "cancelled": "90",
}

// coloured is a cell's text in the colour of its state.
func (t *Table) coloured(text string, at int, row []cell, colour bool) string {
	if !colour || row == nil || t.columns[at].by != ByState || colours[row[at].text] == "" {
		return text
	}
	return "\x1b[" + colours[row[at].text] + "m" + text + "\x1b[0m"
}
