package site

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"poolkeeper/configs"
	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/rebuild"
)

var buildHeads = []string{"Build", "State", "Since", "Files", "Built on", "Uploads"}

// images lists all images with their builds: ?state= &provider= &image= &q=.
func (s *Site) images(r *http.Request) (*layout.Page, error) {
	look := s.look()
	f := filterOf(r, field{Name: "image", Key: "image"}, field{Name: "state", Key: "state", Options: buildStates(look.images)},
		field{Name: "provider", Key: "provider", Options: look.providerNames()}, field{Name: "text", Key: "q"})
	t := &table{Caption: "Builds of all images, the newest first, with their uploads", Heads: buildHeads, Empty: "There are no images."}
	for _, image := range look.images {
		if f.Fields[0].Value != "" && !contains(image.Name, f.Fields[0].Value) {
			continue
		}
		v := look.viewImage(image)
		var rows []row
		for n, b := range v.Builds {
			if look.buildPasses(f, image.Builds[len(image.Builds)-1-n]) {
				rows = append(rows, buildRow(image.Name, b))
			}
		}
		if len(rows) == 0 && f.On() && f.Fields[0].Value == "" {
			continue
		}
		flags := v.Flags
		if len(v.Builds) == 0 {
			flags = append(flags, layout.Mark("no builds", "off"))
		}
		t.Total += max(1, len(rows))
		if len(t.Rows)+len(rows) > maxRows {
			continue
		}
		if len(rows) == 0 {
			rows = []row{{}}
		}
		rows[0].Group, rows[0].To, rows[0].Flags = v.Name, imageLink(v.Name).To, flags
		t.Rows = append(t.Rows, rows...)
	}
	t.Listing = to("listing", "/dib-image-list")
	sh := &sheet{Filter: f, Parts: []part{{ID: "images", Table: t}}}
	sh.Sub = fmt.Sprint(len(look.images))
	return sheetPage("/images", "Images", sh), nil
}

// buildPasses reports whether a filter lets a build pass.
func (s *snapshot) buildPasses(f *filter, b *zkmodel.BuildTree) bool {
	has := map[string][]string{"state": {string(b.State)}, "image": {f.Fields[0].Value}, "q": {b.Name(), b.Reason, b.Builder}}
	for _, u := range b.Uploads {
		has["provider"] = append(has["provider"], u.Provider)
		has["state"] = append(has["state"], string(u.State))
		has["q"] = append(has["q"], u.Reason, u.ExternalName, u.ExternalID.Text())
	}
	return f.wants(has)
}

// buildStates are the states of builds and uploads.
func buildStates(images []*zkmodel.Image) (states []string) {
	seen := map[string]bool{}
	for _, i := range images {
		for _, b := range i.Builds {
			seen[string(b.State)] = true
			for _, u := range b.Uploads {
				seen[string(u.State)] = true
			}
		}
	}
	for one := range seen {
		states = append(states, one)
	}
	return states
}

// buildRow is a line about a build.
func buildRow(image string, b buildView) row {
	uploads := cell{}
	for _, u := range b.Uploads {
		uploads.Items = append(uploads.Items, uploadCell(u))
	}
	link := buildLink(image, b.ID)
	on := text(b.Builder).why(b.Reason)
	if b.Took != "" {
		on = on.small("in " + b.Took)
	}
	on.Log = b.Log
	return row{ID: link.Text, Cells: []cell{
		{Text: b.ID, To: link.To, Mono: true}, state(b.State).small(b.Failures), since(b.Since), text(b.Formats).small(b.Size), on, uploads,
	}}
}

// uploadCell is an upload in a word.
func uploadCell(u uploadView) cell {
	c := linked(providerLink(u.Provider)).small(listing.Words(" ", u.Since.Ago, u.Progress, u.Failures)).why(u.Reason)
	c.Badges = []layout.Badge{u.State}
	c.Progress, c.Progressing = u.Percent, u.Progress != ""
	return c
}

// image is the page of one image: its schedule, what serves where, its builds.
func (s *Site) image(r *http.Request) (*layout.Page, error) {
	look, name := s.look(), r.PathValue("image")
	at := slices.IndexFunc(look.images, func(i *zkmodel.Image) bool { return i.Name == name })
	configured, _ := look.cfg.DiskImage(name)
	if at < 0 && configured == nil {
		return nil, absent("image", name, look.imageNames())
	}
	image := &zkmodel.Image{Name: name}
	if at >= 0 {
		image = look.images[at]
	}
	v := look.viewImage(image)
	sh := &sheet{Heading: name, Badges: v.Flags, Facts: append(look.imageFacts(image, configured), s.ended("image", name)...)}
	if items := look.itemsOf(func(i *thing) bool { return i.Image == name }); items != nil {
		sh.Parts = append(sh.Parts, part{ID: "attention", Title: "Needs attention", Table: items})
	}
	sh.Parts = append(sh.Parts, part{ID: "providers", Title: "In service", Table: look.places(name)})
	builds := tableOf("Builds of this image, the newest first", "There is no build.", buildHeads, v.Builds, func(b buildView) row { return buildRow(name, b) })
	sh.Parts = append(sh.Parts, part{ID: "builds", Title: "Builds", Table: builds})
	return sheetPage("/images", "Image "+name, sh, to("Images", "/images")), nil
}

// imageNames are those that the tree has, or the configuration.
func (s *snapshot) imageNames() (names []string) {
	for _, i := range s.images {
		names = append(names, i.Name)
	}
	for n := range s.cfg.DiskImages {
		names = append(names, s.cfg.DiskImages[n].Name)
	}
	return names
}

// explain is what this host's builder has to do for an image. It reads the tree anew, so it does not
// follow changes.
func (s *Site) explain(r *http.Request) (*layout.Page, error) {
	look, name := s.look(), r.PathValue("image")
	_, configured := look.cfg.DiskImage(name)
	if !configured && !slices.ContainsFunc(look.images, func(i *zkmodel.Image) bool { return i.Name == name }) {
		return nil, absent("image", name, look.imageNames())
	}
	short := part{ID: "decisions", Note: "The state of the build and of each upload, and the rule that decides it. poolkeeper explain " + name + " prints the same."}
	one := part{ID: "rules", Title: "All rules", Note: "Every rule that the builder of this host applies. poolkeeper explain --all " + name + " prints the same."}
	reasons, err := s.Explain(r.Context(), name)
	if err != nil {
		short.Note, one.Note = "What this host's builder has to do for the image cannot be told: "+err.Error(), ""
	} else {
		deciding := slices.DeleteFunc(slices.Clone(reasons), func(v Reason) bool { return v.Outcome == "" })
		short.Table = tableOf("What happens, and why", "No rule decides anything.", []string{"About", "State", "Why", "Rule"}, deciding, func(v Reason) row {
			return row{Cells: []cell{text(v.Subject), text(v.Outcome), text(v.Detail), text(v.Rule)}}
		})
		one.Table = tableOf("Rules, and what each says", "No rule says anything.", []string{"About", "Rule", "Says", "Why"}, reasons, func(v Reason) row {
			return row{Cells: []cell{text(v.Subject), text(v.Rule), text(v.Speaks), text(v.Detail)}}
		})
	}
	p := sheetPage("/images", "Why "+name, &sheet{Parts: []part{short, one}}, to("Images", "/images"), imageLink(name))
	p.Live = ""
	return p, nil
}

// imageFacts are what the configuration says of an image.
func (s *snapshot) imageFacts(image *zkmodel.Image, c *configs.DiskImage) []fact {
	if c == nil {
		if s.Config == nil {
			return nil
		}
		return []fact{{Name: "Configuration", Cell: text("this daemon's configuration does not have it")}}
	}
	var schedule []string
	if c.RebuildSchedule != "" {
		schedule = append(schedule, fmt.Sprintf("at %s (%s)", c.RebuildSchedule, cmp.Or(c.RebuildTimezone, "UTC")))
	}
	if c.RebuildAge > 0 {
		schedule = append(schedule, "when "+listing.Span(c.RebuildAge)+" old")
	}
	if len(schedule) == 0 {
		schedule = []string{"only when asked for"}
	}
	due := cell{}
	if next := s.due(image, c); !next.IsZero() {
		w := layout.Moment(next, s.now)
		w.Ago = "" // it is to come
		due = moment(w)
		if left := next.Sub(s.now); left > 0 {
			due = due.small("in " + listing.Span(left))
		} else {
			due = due.marked("due for "+listing.Span(-left), "late")
		}
	}
	why := cell{}
	if s.Explain != nil {
		why = linked(to("what the builder has to do, rule by rule", imageLink(image.Name).To+"/explain"))
	}
	builders := listing.Words(", ", append([]string{c.Architecture}, c.HostLabels...)...)
	return facts(
		fact{Name: "Built", Cell: text(strings.Join(schedule, ", "))},
		fact{Name: "Next due", Cell: due},
		fact{Name: "Why", Cell: why},
		fact{Name: "Release", Cell: text(c.Release)},
		fact{Name: "Elements", Cell: text(strings.Join(c.Elements, ", "))},
		fact{Name: "Formats", Cell: text(strings.Join(s.cfg.ImageFormats(c.Name), ", "))},
		fact{Name: "Kept", Cell: text(fmt.Sprintf("%d builds", c.KeepBuilds))},
		fact{Name: "Hosts", Cell: text(builders)},
		fact{Name: "Labels", Cell: several(s.labelsOf(c.Name))},
	)
}

// due is when the newest ready build is to be followed by another; zero when nothing says so.
func (s *snapshot) due(image *zkmodel.Image, c *configs.DiskImage) time.Time {
	for _, b := range slices.Backward(image.Builds) {
		if b.Broken != nil || b.State != zkmodel.BuildReady {
			continue
		}
		age, aged := rebuild.DueByAge(c, b.Build, s.now)
		next, planned, err := rebuild.DueBySchedule(c, b.Build)
		if err == nil && planned && (!aged || next.Before(age)) {
			return next
		}
		return age
	}
	return time.Time{}
}

// labelsOf are the labels that are made from an image.
func (s *snapshot) labelsOf(image string) []layout.Link {
	var names []string
	for n := range s.cfg.Providers {
		for _, pool := range s.cfg.Providers[n].Pools {
			for _, l := range pool.Labels {
				if l.DiskImage == image && !slices.Contains(names, l.Name) {
					names = append(names, l.Name)
				}
			}
		}
	}
	slices.Sort(names)
	return links(names, s.labelLink)
}

// labelLink leads to the nodes of a label, where nodes are followed.
func (s *snapshot) labelLink(label string) layout.Link {
	if s.Tree.Nodes == nil {
		return layout.Link{Text: label}
	}
	return to(label, listTo("/nodes", "label", label))
}
