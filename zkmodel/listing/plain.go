package listing

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Head is a column of a table that its caller fills.
type Head struct {
	Title string // for people; "" is documents only
	Key   string // in documents
	By    By     // what it can be filtered by
}

// Shown is a value of which people see something else than documents have.
type Shown struct {
	Text  string
	Value any
}

// NewPlain returns a table of ours without rows. It has no lines around its cells. kind is what it
// lists, in documents. Its names are the first column.
func NewPlain(kind string, heads ...Head) *Table {
	t := &Table{kind: kind, plain: true}
	for _, h := range heads {
		t.columns = append(t.columns, column{title: h.Title, key: h.Key, by: h.By})
	}
	return t
}

// Named has the name of what a row tells of made from the texts of its cells.
func (t *Table) Named(name func(cells []string) string) {
	t.named = func(row []cell) string {
		texts := make([]string, len(row))
		for i, c := range row {
			texts[i] = c.text
		}
		return name(texts)
	}
}

// Row adds a row: a value for each column, a string, a number, a flag, a time or Shown; nil is
// nothing.
func (t *Table) Row(values ...any) {
	row := make([]cell, len(t.columns))
	for i, value := range values {
		row[i] = cellOf(value)
	}
	t.rows = append(t.rows, row)
}

// cellOf is a cell of a value.
func cellOf(value any) cell {
	switch v := value.(type) {
	case string:
		return text(v)
	case int:
		return number(v)
	case uint64:
		return cell{text: strconv.FormatUint(v, 10), value: v, rank: float64(v)}
	case bool:
		return flag(v)
	case time.Time:
		return moment(&v)
	case Shown:
		c := cellOf(v.Value)
		c.text = shown(v.Text)
		return c
	}
	return cell{value: value}
}

// Items are the rows as a document of ours has them: an array of objects.
func (t *Table) Items() (json.RawMessage, error) {
	var all strings.Builder
	out := bufio.NewWriter(&all)
	out.WriteString("[")
	for i, row := range t.rows {
		out.WriteString(separator(i, ", "))
		if err := t.item(out, row); err != nil {
			return nil, err
		}
	}
	out.WriteString("]")
	_ = out.Flush() // a Builder takes all
	return json.RawMessage(all.String()), nil
}

// writePlain writes the columns of a grid without lines around the cells.
func (t *Table) writePlain(w io.Writer, g grid, colour bool) error {
	out := bufio.NewWriter(w)
	line := func(text func(at int) string, row []cell) {
		var one strings.Builder
		for i, at := range g.columns {
			cell := text(at)
			if g.measure(cell) > g.widths[i] {
				cell = Fit(cell, g.widths[i])
			}
			one.WriteString(separator(i, between) + t.coloured(cell, at, row, colour) + strings.Repeat(" ", max(0, g.widths[i]-g.measure(cell))))
		}
		out.WriteString(strings.TrimRight(one.String(), " ") + "\n")
	}
	line(func(at int) string { return t.columns[at].title }, nil)
	for _, row := range t.rows {
		line(func(at int) string { return row[at].text }, row)
	}
	return out.Flush()
}

// write writes the columns of a grid as the table's kind is written.
func (t *Table) write(w io.Writer, g grid, colour bool) error {
	if t.plain {
		return t.writePlain(w, g, colour)
	}
	return t.writeBox(w, g, colour)
}

// characters measures as Nodepool's tables do.
func characters(text string) int { return utf8.RuneCountInString(text) }
