package attention

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Group is what is told in one line: alike items.
type Group struct {
	Kind   Kind
	What   string
	Why    string    // of the newest
	Since  time.Time // of the oldest; zero when it is not known
	Do     string    // what to type, about the newest
	Count  int
	Urgent bool
	// Images and Providers are what it is of, sorted.
	Images, Providers []string
}

// Fold puts alike items together: those of one kind, with one reason but for what they are
// of and for numbers. What is urgent comes first, otherwise the order stays.
func Fold(items []Item) []Group {
	type key struct {
		kind Kind
		why  string
	}
	place := map[key]int{}
	var folded [][]Item
	for _, i := range items {
		k := key{i.Kind, i.alike()}
		at, known := place[k]
		if !known {
			at = len(folded)
			place[k], folded = at, append(folded, nil)
		}
		folded[at] = append(folded[at], i)
	}
	groups := make([]Group, 0, len(folded))
	for _, alike := range folded {
		groups = append(groups, groupOf(alike))
	}
	slices.SortStableFunc(groups, func(a, b Group) int { return cmp.Compare(rank(a.Urgent), rank(b.Urgent)) })
	return groups
}

func rank(urgent bool) int {
	if urgent {
		return 0
	}
	return 1
}

// figures are what differs between alike reasons: ids and numbers.
var figures = regexp.MustCompile(`[0-9a-fA-F]{8}[0-9a-fA-F-]*|\d+`)

// alike is the item's reason without what only this one has.
func (i *Item) alike() string {
	text := i.Why
	for _, name := range []string{i.Image, i.Provider} {
		if name != "" && strings.Contains(text, name) {
			text = regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).ReplaceAllLiteralString(text, "*")
		}
	}
	return figures.ReplaceAllString(text, "#")
}

// groupOf tells alike items in one line.
func groupOf(items []Item) Group {
	newest := &items[0]
	g := Group{Kind: newest.Kind, Count: len(items)}
	for n := range items {
		i := &items[n]
		if i.Since.After(newest.Since) {
			newest = i
		}
		if !i.Since.IsZero() && (g.Since.IsZero() || i.Since.Before(g.Since)) {
			g.Since = i.Since
		}
		g.Urgent = g.Urgent || i.Urgent
		g.Images, g.Providers = with(g.Images, i.Image), with(g.Providers, i.Provider)
	}
	g.What, g.Why, g.Do = newest.What, newest.Why, newest.Do()
	if g.Count > 1 {
		g.What = fmt.Sprintf("%d %s", g.Count, kinds[g.Kind].many)
		if in := Names(g.Providers, 2); in != "" {
			g.What += " in " + in
		}
		if of := Names(g.Images, 3); of != "" {
			g.What += ": " + of
		}
	}
	return g
}

// with is a sorted list with another name in it, once; "" is none.
func with(list []string, name string) []string {
	at, there := slices.BinarySearch(list, name)
	if name == "" || there {
		return list
	}
	return slices.Insert(list, at, name)
}

// Names lists some names, and says how many there are more.
func Names(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most-1], ", "), len(list)-most+1)
}
