package listing

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrColumn is for a column that a table does not have.
var ErrColumn = errors.New("no such column")

// Select is the same table with only these columns for people, named by their
// JSON keys, in the table's order. JSON always has all columns. Errors:
// ErrColumn, with the names that there are.
func (t *Table) Select(keys ...string) (*Table, error) {
	columns := slices.Clone(t.columns)
	var names []string
	for i, c := range columns {
		if c.title == "" {
			continue
		}
		names = append(names, c.key)
		columns[i].detail = false
		if !slices.Contains(keys, c.key) {
			columns[i].title = ""
		}
	}
	for _, key := range keys {
		if !slices.Contains(names, key) {
			return nil, fmt.Errorf("select column %q: %w; these are: %s", key, ErrColumn, strings.Join(names, ", "))
		}
	}
	return &Table{kind: t.kind, named: t.named, columns: columns, rows: t.rows}, nil
}

// Clear empties the cells of a column, named by its JSON key: they become null.
func (t *Table) Clear(key string) {
	for i, c := range t.columns {
		if c.key != key {
			continue
		}
		for _, row := range t.rows {
			row[i] = cell{}
		}
	}
}
