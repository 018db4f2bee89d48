package site

import (
	"fmt"
	"net/http"
	"strings"

	"poolkeeper/web/layout"
)

// maxFound is how many things of a kind a search shows.
const maxFound = 20

// search finds what has a text in its name: ?q=. One thing of exactly that name is gone to.
func (s *Site) search(r *http.Request) (*layout.Page, error) {
	look, q := s.look(), strings.TrimSpace(query(r, "q"))
	sh := &sheet{Heading: "Search", Sub: q}
	exact := ""
	found := func(id, title string, all func(add func(l layout.Link, more ...string))) {
		t := &table{Caption: title + " with " + q, Heads: []string{title, ""}}
		all(func(l layout.Link, more ...string) {
			if l.Text == q && exact == "" {
				exact = l.To
			}
			if !contains(l.Text, q) && !contains(strings.Join(more, "\n"), q) {
				return
			}
			if t.Total++; t.Total <= maxFound {
				t.Rows = append(t.Rows, row{Cells: []cell{linked(l), text(strings.Join(more, " "))}})
			}
		})
		if t.Total > 0 {
			sh.Parts = append(sh.Parts, part{ID: id, Title: title, Table: t})
		}
	}
	if q != "" {
		look.findIn(found)
	}
	if exact != "" {
		return nil, &layout.RedirectError{To: exact}
	}
	if len(sh.Parts) == 0 {
		note := "Give a part of the name of an image, build, node, request, provider, daemon or label, of an address, or of an event."
		if q != "" {
			note = fmt.Sprintf("Nothing has %q in its name. %s", q, note)
		}
		sh.Parts = []part{{ID: "none", Note: note}}
	}
	p := sheetPage("", "Search", sh)
	p.Query = q
	return p, nil
}

// findIn offers everything that has a page.
func (s *snapshot) findIn(found func(id, title string, all func(add func(l layout.Link, more ...string)))) {
	found("images", "Image", func(add func(layout.Link, ...string)) {
		for _, i := range s.images {
			add(imageLink(i.Name))
		}
	})
	found("providers", "Provider", func(add func(layout.Link, ...string)) {
		for _, name := range s.providerNames() {
			if s.Tree.Components != nil {
				add(providerLink(name))
			}
		}
	})
	found("builds", "Build", func(add func(layout.Link, ...string)) {
		for _, i := range s.images {
			for _, b := range i.Builds {
				var ids []string
				for _, u := range b.Uploads {
					ids = append(ids, u.ExternalName, u.ExternalID.Text())
				}
				add(buildLink(i.Name, b.ID), ids...)
			}
		}
	})
	found("nodes", "Node", func(add func(layout.Link, ...string)) {
		for _, n := range s.nodes {
			add(nodeLink(n.ID), append([]string{n.Hostname, n.InterfaceIP, n.ExternalID.Text()}, n.Type...)...)
		}
	})
	found("requests", "Request", func(add func(layout.Link, ...string)) {
		for _, r := range s.requests {
			add(requestLink(r.ID), append([]string{r.EventID, r.Requestor}, r.NodeTypes...)...)
		}
	})
	found("daemons", "Daemon", func(add func(layout.Link, ...string)) {
		for _, c := range s.daemons {
			add(daemonLink(c.Kind, c.Hostname), c.Kind)
		}
	})
}
