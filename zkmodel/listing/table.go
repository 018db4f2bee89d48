// Package listing shows the tree to people and scripts: the tables of
// Nodepool's command line and status page, column for column, and the same rows
// as JSON. The command line and the web pages both use it.
package listing

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"unicode"
)

// Table is a listing, ready to be shown.
type Table struct {
	kind    string                  // of what it is a listing, in documents of ours
	named   func(row []cell) string // the name of what a row tells of; nil is the first column
	columns []column
	rows    [][]cell
	plain   bool    // no lines around cells
	broken  []error // what is wrong with records that are shown as such
}

// column is one column of a Table: a title for people, a key for JSON.
type column struct {
	title  string // "" is JSON only
	key    string
	detail bool   // shown to people only when they ask for details
	own    string // the key in documents of ours; "" is key
	by     By     // what it can be filtered by
}

// cell is one value, for people and for JSON; a nil value is null.
type cell struct {
	text  string
	value any
	own   any     // the value in documents of ours; nil is value
	rank  float64 // where numbers stand in order, and times
}

// Broken says of each record, and of each list of records, that could not be read or
// decoded, why. What it holds is not in the Table.
func (t *Table) Broken() []error { return t.broken }

// note keeps what is wrong with a record, if anything is.
func (t *Table) note(err error) {
	if err != nil {
		t.broken = append(t.broken, err)
	}
}

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// WithoutText leaves a column out of the text of a table. JSON keeps it.
func (t *Table) WithoutText(key string) *Table {
	for i := range t.columns {
		if t.columns[i].key == key {
			t.columns[i].title = ""
		}
	}
	return t
}

// WriteText writes the table as Python's PrettyTable would, left aligned, or, of NewPlain, without lines.
// detail adds the columns that are usually left out.
func (t *Table) WriteText(w io.Writer, detail bool) error {
	return t.write(w, t.grid(characters, func(c column) bool { return c.title != "" && (detail || !c.detail) }), false)
}

// grid is which columns are shown, how wide, and what measures that.
type grid struct {
	columns, widths []int
	measure         func(string) int
}

// grid are the columns that are wanted, as wide as what is in them.
func (t *Table) grid(measure func(string) int, wanted func(column) bool) grid {
	g := grid{measure: measure}
	for i, c := range t.columns {
		if !wanted(c) {
			continue
		}
		width := measure(c.title)
		for _, row := range t.rows {
			width = max(width, measure(row[i].text))
		}
		g.columns, g.widths = append(g.columns, i), append(g.widths, width)
	}
	return g
}

// writeBox writes the columns of a grid, with lines around the cells.
func (t *Table) writeBox(w io.Writer, g grid, colour bool) error {
	out := bufio.NewWriter(w)
	rule := func() {
		for _, width := range g.widths {
			out.WriteString("+" + strings.Repeat("-", width+2))
		}
		out.WriteString("+\n")
	}
	line := func(text func(at int) string, row []cell) {
		for i, at := range g.columns {
			one := text(at)
			out.WriteString("| " + t.coloured(one, at, row, colour) + strings.Repeat(" ", g.widths[i]-g.measure(one)+1))
		}
		out.WriteString("|\n")
	}
	rule()
	line(func(at int) string { return t.columns[at].title }, nil)
	rule()
	for _, row := range t.rows {
		line(func(at int) string { return row[at].text }, row)
	}
	rule()
	return out.Flush()
}

// WriteJSON writes a list of objects, one a row, with all columns.
func (t *Table) WriteJSON(w io.Writer) error {
	out := bufio.NewWriter(w)
	out.WriteString("[")
	for i, row := range t.rows {
		out.WriteString(separator(i, ",\n "))
		out.WriteString("{")
		for j, c := range row {
			value, err := json.Marshal(c.value)
			if err != nil {
				return err
			}
			out.WriteString(separator(j, ", ") + `"` + t.columns[j].key + `": `)
			out.Write(value)
		}
		out.WriteString("}")
	}
	out.WriteString("]\n")
	return out.Flush()
}

// separator is what stands before the i-th item.
func separator(i int, between string) string {
	if i == 0 {
		return ""
	}
	return between
}

// printable keeps foreign text from breaking the table or the terminal.
func printable(text string) string {
	return strings.ReplaceAll(Visible(text), "\n", " ")
}

// Visible replaces what moves a terminal's cursor, or changes the direction of
// writing: text of records and logs is what others have written. Lines stay lines.
func Visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, text)
}
