package listing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"poolkeeper/configs"
)

// By is what the rows of a Table can be filtered by. Its text is the name of a flag.
type By string

// What listings can be filtered by.
const (
	ByState    By = "state"
	ByProvider By = "provider"
	ByLabel    By = "label"
	ByImage    By = "image"
)

// Knows reports whether values of a filter are there: in a row, or among those that are known
// anyhow. The error of one that is not names the nearest of both.
func (t *Table) Knows(by By, values, known []string) error {
	if len(values) == 0 {
		return nil
	}
	at := t.column(by)
	if at < 0 {
		return fmt.Errorf("--%s: there is none in this listing", by)
	}
	there := map[string]bool{}
	for _, row := range t.rows {
		for _, one := range row[at].values() {
			there[one] = true
		}
	}
	for _, value := range values {
		if there[value] || slices.Contains(known, value) {
			continue
		}
		all := slices.DeleteFunc(slices.AppendSeq(slices.Clone(known), maps.Keys(there)), func(one string) bool { return one == "" })
		return fmt.Errorf("--%s %q: there is none%s", by, value, configs.Similar(value, all))
	}
	return nil
}

// Filter leaves the rows that have one of some values; without values, all.
func (t *Table) Filter(by By, values []string) {
	at := t.column(by)
	if len(values) == 0 || at < 0 {
		return
	}
	t.rows = slices.DeleteFunc(slices.Clone(t.rows), func(row []cell) bool {
		return !slices.ContainsFunc(row[at].values(), func(one string) bool { return slices.Contains(values, one) })
	})
}

// column is the one that a filter looks at, or -1.
func (t *Table) column(by By) int {
	return slices.IndexFunc(t.columns, func(c column) bool { return c.by == by })
}

// values are what a cell can be filtered by: of a list, each item.
func (c cell) values() []string {
	if list, ok := c.value.([]string); ok {
		return list
	}
	if one, ok := c.value.(string); ok {
		return []string{one, c.text} // the text of a paused build differs
	}
	return []string{c.text}
}

// Sort orders the rows by a column, named by its title or key; "-" before the name has the
// largest first. What is equal stays in order, and what has no value comes last.
// Errors: ErrColumn, with the names that there are.
func (t *Table) Sort(by string) error {
	name, down := strings.CutPrefix(by, "-")
	fold := func(s string) string { return strings.NewReplacer(" ", "-", "_", "-").Replace(strings.ToLower(s)) }
	var names []string
	at := -1
	for i, c := range t.columns {
		if c.title != "" {
			names = append(names, fold(c.title))
		}
		if at < 0 && (fold(name) == fold(c.key) || c.title != "" && fold(name) == fold(c.title)) {
			at = i
		}
	}
	if at < 0 {
		return fmt.Errorf("--sort %q: %w%s", by, ErrColumn, configs.Similar(fold(name), names))
	}
	slices.SortStableFunc(t.rows, func(a, b []cell) int {
		x, y := a[at], b[at]
		switch {
		case x.none() && y.none():
			return 0
		case x.none():
			return 1
		case y.none():
			return -1
		}
		order := cmp.Or(cmp.Compare(x.rank, y.rank), strings.Compare(x.text, y.text))
		if down {
			return -order
		}
		return order
	})
	return nil
}

// none reports whether there is nothing in a cell.
func (c cell) none() bool { return c.text == "" && c.rank == 0 && !isNumber(c.value) }

// isNumber reports whether a value is one, such as 0, which shows as nothing in some columns.
func isNumber(v any) bool {
	switch v.(type) {
	case int, int64, float64:
		return true
	}
	return false
}
