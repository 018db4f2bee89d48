package attention

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"poolkeeper/zkmodel"
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

// ofCloud are the kinds that have one cause where they concern one provider: its cloud.
// What concerns most is first.
var ofCloud = []Kind{ProviderDown, ProviderFails, UploadFailed, UploadStuck, NodeFailed, NodeStuck}

// Fold puts alike items together: those of one kind, with one reason but for what they are
// of and for numbers; of a provider's cloud, all. What is urgent comes first, otherwise the order stays.
func Fold(items []Item) []Group {
	type key struct {
		kind     Kind
		why      string
		provider string
	}
	place := map[key]int{}
	var folded [][]Item
	for _, i := range items {
		k := key{kind: i.Kind, why: i.alike()}
		if slices.Contains(ofCloud, i.Kind) && i.Provider != "" {
			k = key{provider: i.Provider}
		}
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

// alike is the item's reason without what only this one has.
func (i *Item) alike() string {
	text := i.Why
	for _, name := range []string{i.Image, i.Provider} {
		if name != "" && strings.Contains(text, name) {
			text = regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).ReplaceAllLiteralString(text, "*")
		}
	}
	return zkmodel.Alike(text)
}

// groupOf folds alike items, or those of one cloud: the reason is that of the provider, else the newest.
func groupOf(items []Item) Group {
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Compare(slices.Index(ofCloud, a.Kind), slices.Index(ofCloud, b.Kind))
	})
	best := &items[0]
	g := Group{Count: len(items)}
	var parts []string
	for rest := items; len(rest) > 0; {
		kind := rest[0].Kind
		n := slices.IndexFunc(rest, func(i Item) bool { return i.Kind != kind })
		if n < 0 {
			n = len(rest)
		}
		parts, rest = append(parts, describe(rest[:n])), rest[n:]
	}
	for n := range items {
		i := &items[n]
		if best.Kind != ProviderDown && best.Kind != ProviderFails && i.Since.After(best.Since) {
			best = i
		}
		if !i.Since.IsZero() && (g.Since.IsZero() || i.Since.Before(g.Since)) {
			g.Since = i.Since
		}
		g.Urgent = g.Urgent || i.Urgent
		g.Images, g.Providers = with(g.Images, i.Image), with(g.Providers, i.Provider)
	}
	g.Kind, g.What, g.Why, g.Do = best.Kind, strings.Join(parts, "; "), best.Why, best.Do()
	return g
}

// describe says in one clause what items of one kind are.
func describe(items []Item) string {
	first := items[0]
	if len(items) == 1 {
		return first.What
	}
	var images, providers []string
	for n := range items {
		images, providers = with(images, items[n].Image), with(providers, items[n].Provider)
	}
	ofOneBuild := !slices.ContainsFunc(items, func(i Item) bool { return i.Image != first.Image || i.Build != first.Build })
	if text, is := oneBuild[first.Kind]; is && ofOneBuild && len(providers) == len(items) {
		return fmt.Sprintf("1 %s in %d providers: %s-%s", text, len(items), first.Image, first.Build)
	}
	text := fmt.Sprintf("%d %s", len(items), kinds[first.Kind].many)
	if in := Names(providers, 2); in != "" {
		text += " in " + in
	}
	if of := Names(images, 3); of != "" {
		text += ": " + of
	}
	return text
}

// oneBuild describes several items of one build, for the kinds that are about a build and not about its copy in a provider.
var oneBuild = map[Kind]string{Verdict: "build was taken back", TrialFailed: "build has failed its trial", Untried: "build is not tried"}

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
