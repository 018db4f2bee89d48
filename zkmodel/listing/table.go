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
	"unicode/utf8"
)

// Table is a listing, ready to be shown.
type Table struct {
	columns []column
	rows    [][]cell
	broken  []error // what is wrong with records that are shown as such
}

// column is one column of a Table: a title for people, a key for JSON.
type column struct {
	title  string // "" is JSON only
	key    string
	detail bool // shown to people only when they ask for details
}

// cell is one value, for people and for JSON; a nil value is null.
type cell struct {
	text  string
	value any
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

// WriteText writes the table as Python's PrettyTable would, left aligned.
// detail adds the columns that are usually left out.
func (t *Table) WriteText(w io.Writer, detail bool) error {
	var shown, widths []int
	for i, c := range t.columns {
		if c.title == "" || c.detail && !detail {
			continue
		}
		width := utf8.RuneCountInString(c.title)
		for _, row := range t.rows {
			width = max(width, utf8.RuneCountInString(row[i].text))
		}
		shown, widths = append(shown, i), append(widths, width)
	}
	out := bufio.NewWriter(w)
	rule := func() {
		for _, width := range widths {
			out.WriteString("+" + strings.Repeat("-", width+2))
		}
		out.WriteString("+\n")
	}
	line := func(text func(column int) string) {
		for i, column := range shown {
			one := text(column)
			out.WriteString("| " + one + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(one)+1))
		}
		out.WriteString("|\n")
	}
	rule()
	line(func(i int) string { return t.columns[i].title })
	rule()
	for _, row := range t.rows {
		line(func(i int) string { return row[i].text })
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
