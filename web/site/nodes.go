package site

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// nodes lists all nodes: ?state= &provider= &label= &image= &q=.
func (s *Site) nodes(r *http.Request) (*layout.Page, error) {
	look := s.look()
	var states, providers []string
	for _, n := range look.nodes {
		states, providers = append(states, string(n.State)), append(providers, n.Provider)
	}
	f := filterOf(r, field{Name: "state", Key: "state", Options: states}, field{Name: "provider", Key: "provider", Options: providers},
		field{Name: "label", Key: "label"}, field{Name: "image", Key: "image"}, field{Name: "text", Key: "q"})
	list := kept(f, look.nodes, func(n *zkmodel.Node) map[string][]string {
		image := look.imageOf(n).Text
		if key, err := zkmodel.ParseUploadPath(n.ImageID); err == nil {
			image = key.Image
		}
		return map[string][]string{
			"state": {string(n.State)}, "provider": {n.Provider}, "label": n.Type, "image": {image, look.imageOf(n).Text},
			"q": append([]string{n.ID, n.Hostname, n.InterfaceIP, n.AllocatedTo, n.Comment, n.Reason, n.ExternalID.Text(), n.TenantName}, n.Type...),
		}
	})
	counts := countNodes(list)
	sums := tableOf("How many nodes of which label and provider", "There are no nodes.", []string{"Label", "Provider", "Nodes"}, counts, func(c nodeCount) row {
		return row{Cells: []cell{linked(layout.Link{Text: c.Label, To: listTo("/nodes", "label", c.Label)}), linked(providerLink(c.Provider)), {Badges: c.States}}}
	})
	nodes := look.nodeTable(list)
	nodes.Listing = to("listing", "/node-list")
	sh := &sheet{Filter: f, Sub: fmt.Sprint(len(list)), Parts: []part{{ID: "nodes", Table: nodes}}}
	if sums.Total > 0 {
		sh.Parts = append(sh.Parts, part{ID: "counts", Title: "By label and provider", Table: sums})
	}
	return sheetPage("/nodes", "Nodes", sh), nil
}

// nodeTable lists nodes.
func (s *snapshot) nodeTable(list []*zkmodel.Node) *table {
	return tableOf("Nodes, by their ids", "There are no nodes.", []string{"Node", "State", "Since", "Label", "Provider", "Server", "Image", "Allocated to"}, list, func(n *zkmodel.Node) row {
		v := s.viewNode(n)
		condition := state(v.State)
		if v.Locked {
			condition = condition.small("locked")
		}
		server := text(v.Server).small(v.Address).why(v.Reason)
		image := s.imageOf(n)
		return row{ID: n.ID, Cells: []cell{
			id(nodeLink(n.ID)), condition, since(v.Since), text(v.Labels), linked(providerLink(v.Provider)).small(v.Pool), server, id(image), id(s.requestOf(v.AllocatedTo)),
		}}
	})
}

// requestOf leads to a request that there is.
func (s *snapshot) requestOf(id string) layout.Link {
	if slices.ContainsFunc(s.requests, func(r *zkmodel.Request) bool { return r.ID == id }) {
		return requestLink(id)
	}
	return layout.Link{Text: id}
}

// node is the page of one node.
func (s *Site) node(r *http.Request) (*layout.Page, error) {
	look, id := s.look(), r.PathValue("node")
	at := slices.IndexFunc(look.nodes, func(n *zkmodel.Node) bool { return n.ID == id })
	if at < 0 {
		return nil, s.gone("node", id, idsOf(look.nodes, func(n *zkmodel.Node) string { return n.ID }))
	}
	n := look.nodes[at]
	v := look.viewNode(n)
	sh := &sheet{Heading: "Node " + id, Badges: []layout.Badge{v.State}, Facts: append(look.nodeFacts(n, v), s.ended("kind", "node", "provider", n.Provider)...)}
	if v.Locked {
		sh.Badges = append(sh.Badges, layout.Mark("locked", "off"))
	}
	if items := look.itemsOf(func(i *thing) bool { return i.Name == id && strings.HasPrefix(string(i.Kind), "node-") }); items != nil {
		sh.Parts = append(sh.Parts, part{ID: "attention", Title: "Needs attention", Table: items})
	}
	return sheetPage("/nodes", "Node "+id, sh, to("Nodes", "/nodes")), nil
}

// eventOf is Zuul's event of the request that a node is of; "" when that is gone.
func (s *snapshot) eventOf(n *zkmodel.Node) string {
	at := slices.IndexFunc(s.requests, func(r *zkmodel.Request) bool { return n.AllocatedTo != "" && r.ID == n.AllocatedTo })
	if at < 0 {
		return ""
	}
	return s.requests[at].EventID
}

// nodeFacts are what is known of a node.
func (s *snapshot) nodeFacts(n *zkmodel.Node, v nodeView) []fact {
	image := s.imageOf(n)
	var uses []string
	for _, name := range []string{"instances", "cores", "ram"} {
		if amount := n.Resources[name]; amount > 0 && name != "instances" {
			uses = append(uses, fmt.Sprintf("%d %s", amount, strings.Replace(name, "ram", "MiB", 1)))
		}
	}
	tries := cell{}
	if n.Attempt > 1 {
		tries = text(fmt.Sprintf("attempt %d", n.Attempt))
	}
	hold := cell{}
	if n.HoldExpiration > 0 {
		hold = text(listing.Span(layout.Seconds(float64(n.HoldExpiration))))
	}
	return facts(
		fact{Name: "Reason", Cell: cell{Why: v.Reason}},
		fact{Name: "Asked for", Cell: moment(layout.Moment(n.CreatedTime.Time(), s.now))},
		fact{Name: "State since", Cell: moment(layout.Moment(listing.Changed(n.StateTime, n.Stat.Mtime), s.now))},
		fact{Name: "Launch", Cell: tries},
		fact{Name: "Labels", Cell: several(links(n.Type, s.labelLink))},
		fact{Name: "Provider", Cell: linked(providerLink(n.Provider)).small(listing.Words(", ", n.Pool, n.Region, n.AZ))},
		fact{Name: "Image", Cell: linked(image)},
		fact{Name: "Server", Cell: mono(cmp.Or(n.Hostname, n.ExternalID.Text())).small(n.ExternalID.Text())},
		fact{Name: "Address", Cell: mono(v.Address)},
		fact{Name: "Resources", Cell: text(strings.Join(uses, ", "))},
		fact{Name: "Allocated to", Cell: linked(s.requestOf(n.AllocatedTo))},
		fact{Name: "Event", Cell: mono(s.eventOf(n))},
		fact{Name: "Tenant", Cell: text(n.TenantName)},
		fact{Name: "Requestor", Cell: text(n.Requestor)},
		fact{Name: "Held for", Cell: hold},
		fact{Name: "Hold of job", Cell: text(n.HoldJob)},
		fact{Name: "Launcher", Cell: text(n.Launcher)},
	)
}
