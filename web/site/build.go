package site

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// build is the page of one build: how it went, its files, its uploads.
func (s *Site) build(r *http.Request) (*layout.Page, error) {
	look, name := s.look(), r.PathValue("build")
	var image *zkmodel.Image
	var b *zkmodel.BuildTree
	var names []string
	for _, i := range look.images {
		for _, one := range i.Builds {
			names = append(names, one.Name())
			if one.Name() == name {
				image, b = i, one
			}
		}
	}
	if b == nil {
		return nil, s.gone("build", name, names)
	}
	v := look.viewBuild(image, b)
	sh := &sheet{Heading: name, Badges: []layout.Badge{v.State}, Facts: append(look.buildFacts(b, v), s.ended("image", image.Name, "build", b.ID)...)}
	if line := timeline(b, look.now); line != nil {
		sh.Parts = append(sh.Parts, part{ID: "phases", Title: "Phases", Line: line})
	}
	if b.Tail != "" {
		sh.Parts = append(sh.Parts, part{ID: "tail", Title: "Last lines of the log", Pre: b.Tail})
	}
	if items := look.itemsOf(func(i *thing) bool { return i.Image == image.Name && i.Build == b.ID }); items != nil {
		sh.Parts = append(sh.Parts, part{ID: "attention", Title: "Needs attention", Table: items})
	}
	files := tableOf("Files of this build", "There is no file.", []string{"Format", "Size", "SHA-256", "MD5"}, slices.Sorted(maps.Keys(b.Files)), func(format string) row {
		file := b.Files[format]
		return row{Cells: []cell{text(format), text(layout.Size(file.Size)), mono(file.SHA256), mono(file.MD5)}}
	})
	uploads := tableOf("Uploads of this build", "It was uploaded nowhere.", []string{"Provider", "State", "Since", "Name there", "Id there", "Uploaded by"}, slices.Collect(two(v.Uploads, b.Uploads)), func(u both) row {
		now := state(u.view.State).small(listing.Words(" ", u.view.Progress, u.view.Failures)).why(u.view.Reason)
		now.Progress, now.Progressing = u.view.Percent, u.view.Progress != ""
		return row{ID: u.record.Provider + "-" + u.record.ID, Cells: []cell{
			linked(providerLink(u.view.Provider)), now, since(u.view.Since), mono(u.view.Name), mono(u.view.ID), text(u.record.Builder),
		}}
	})
	sh.Parts = append(sh.Parts, part{ID: "uploads", Title: "Uploads", Table: uploads}, part{ID: "files", Title: "Files", Table: files})
	if s.Tree.Nodes != nil {
		if t := look.nodeTable(slices.DeleteFunc(slices.Clone(look.nodes), func(n *zkmodel.Node) bool { return look.imageOf(n).Text != name })); t.Total > 0 {
			sh.Parts = append(sh.Parts, part{ID: "nodes", Title: "Nodes", Table: t})
		}
	}
	return sheetPage("/images", "Build "+name, sh, to("Images", "/images"), imageLink(image.Name)), nil
}

// both is an upload as it is shown, and its record.
type both struct {
	view   uploadView
	record *zkmodel.Upload
}

// two puts views and records together.
func two(views []uploadView, records []*zkmodel.Upload) func(func(both) bool) {
	return func(yield func(both) bool) {
		for n := range views {
			if !yield(both{views[n], records[n]}) {
				return
			}
		}
	}
}

// buildFacts are what is known of a build.
func (s *snapshot) buildFacts(b *zkmodel.BuildTree, v buildView) []fact {
	log := cell{}
	if v.Log != "" {
		log = cell{Text: "the whole log", To: v.Log}
	}
	exit := cell{}
	if b.ExitCode != 0 {
		exit = text(fmt.Sprint(b.ExitCode))
	}
	on := linked(layout.Link{Text: b.Builder})
	if s.hasDaemon(zkmodel.KindBuilder, b.Builder) {
		on = linked(daemonLink(zkmodel.KindBuilder, b.Builder))
	}
	return facts(
		fact{Name: "Image", Cell: linked(imageLink(b.Image))},
		fact{Name: "Began", Cell: moment(layout.Moment(b.Stat.Ctime, s.now))},
		fact{Name: "State since", Cell: moment(layout.Moment(listing.Changed(b.StateTime, b.Stat.Mtime), s.now))},
		fact{Name: "Took", Cell: text(v.Took)},
		fact{Name: "Built on", Cell: on},
		fact{Name: "Formats", Cell: text(strings.Join(b.Formats, ", ")).small(v.Size)},
		fact{Name: "Reason", Cell: cell{Why: v.Reason}},
		fact{Name: "Failures", Cell: text(v.Failures)},
		fact{Name: "Exit code", Cell: exit},
		fact{Name: "Log", Cell: log},
	)
}

// phaseNames say what the phases of a build are; others are shown as they are called.
var phaseNames = map[string]string{"command": "disk-image-create", "verify": "check and sum"}

// phaseOrder is the order in which phases come; others follow by name.
var phaseOrder = []string{"command", "verify"}

// timeline is how long the phases of a build took, in their order; nil when nobody knows. A build
// that is being made is in its first phase.
func timeline(b *zkmodel.BuildTree, now time.Time) []span {
	phases := maps.Clone(b.Phases)
	if b.State == zkmodel.BuildBuilding && b.Broken == nil && len(phases) == 0 && !b.Stat.Ctime.IsZero() {
		phases = map[string]float64{"command": now.Sub(b.Stat.Ctime).Seconds()}
	}
	var total float64
	names := slices.Clone(phaseOrder)
	for _, name := range slices.Sorted(maps.Keys(phases)) {
		total += max(0, phases[name])
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if total <= 0 {
		return nil
	}
	var line []span
	x := 0
	for n, name := range names {
		took, known := phases[name]
		if !known || took < 0 {
			continue
		}
		width := max(2, int(1000*took/total))
		one := span{Name: name, Took: listing.Span(layout.Seconds(took)), X: x, Width: width, Kind: fmt.Sprintf("phase%d", n%3)}
		if told := phaseNames[name]; told != "" {
			one.Name = told
		}
		if b.State == zkmodel.BuildBuilding {
			one.Took += " so far"
		}
		x += width
		line = append(line, one)
	}
	return line
}
