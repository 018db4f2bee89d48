package site

import (
	"net/http"
	"strings"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel/attention"
	"poolkeeper/zkmodel/listing"
)

// thing is one thing that needs attention.
type thing = attention.Item

// attention lists all that needs attention, each thing by itself: ?kind= &provider= &image= &q=.
func (s *Site) attention(r *http.Request) (*layout.Page, error) {
	look := s.look()
	items := look.items()
	var kinds, providers []string
	for _, i := range items {
		kinds, providers = append(kinds, string(i.Kind)), append(providers, i.Provider)
	}
	f := filterOf(r, field{Name: "kind", Key: "kind", Options: kinds}, field{Name: "provider", Key: "provider", Options: providers},
		field{Name: "image", Key: "image"}, field{Name: "text", Key: "q"})
	t := look.itemTable(kept(f, items, func(i thing) map[string][]string {
		return map[string][]string{"kind": {string(i.Kind)}, "provider": {i.Provider}, "image": {i.Image}, "q": {i.What, i.Why}}
	}))
	return sheetPage("/", "Needs attention", &sheet{Filter: f, Parts: []part{{ID: "attention", Table: t}}}), nil
}

// itemsOf lists what needs attention of some things; nil when nothing does.
func (s *snapshot) itemsOf(of func(*thing) bool) *table {
	var list []thing
	for _, i := range s.items() {
		if of(&i) {
			list = append(list, i)
		}
	}
	switch {
	case len(list) == 0:
		return nil
	case len(list) > mostMatters:
		return s.groupTable(attention.Fold(list))
	}
	return s.itemTable(list)
}

// groupTable lists alike things in one line.
func (s *snapshot) groupTable(groups []attention.Group) *table {
	return tableOf("What needs attention, alike things in one line", "Nothing.", []string{"What", "Since", "Why", "What to type"}, groups, func(g attention.Group) row {
		what := linked(layout.Link{Text: g.What, To: listTo("/attention", "kind", string(g.Kind))})
		if len(g.Providers) == 1 {
			what = linked(layout.Link{Text: g.What, To: listTo("/attention", "provider", g.Providers[0])})
		}
		return row{Cells: []cell{what, since(layout.Moment(g.Since, s.now)), {Why: firstLine(g.Why)}, mono(g.Do)}}
	})
}

func (s *snapshot) itemTable(items []thing) *table {
	return tableOf("What needs attention", "Nothing.", []string{"What", "Since", "Why", "What to type"}, items, func(i thing) row {
		what := linked(layout.Link{Text: i.What, To: s.about(&i)})
		why := cell{Why: listing.Words("\n", i.Why, i.Tail), Log: s.log(i.Log)}
		return row{Cells: []cell{what, since(layout.Moment(i.Since, s.now)), why, mono(i.Do())}}
	})
}

// about is the page of what an item is of; "" where there is none.
func (s *snapshot) about(i *thing) string {
	switch {
	case i.Name != "" && strings.HasPrefix(string(i.Kind), "node-") && s.Tree.Nodes != nil:
		return nodeLink(i.Name).To
	case i.Name != "" && strings.HasPrefix(string(i.Kind), "request-") && s.Tree.Requests != nil:
		return requestLink(i.Name).To
	case i.Image != "" && i.Build != "" && s.hasBuild(i.Image, i.Build):
		return buildLink(i.Image, i.Build).To
	case i.Image != "" && s.Tree.Images != nil:
		return imageLink(i.Image).To
	case i.Provider != "" && s.Tree.Components != nil:
		return providerLink(i.Provider).To
	}
	return ""
}

// hasBuild reports whether there is a record of a build.
func (s *snapshot) hasBuild(image, build string) bool {
	for _, i := range s.images {
		if i.Name == image {
			return i.Build(build) != nil
		}
	}
	return false
}
