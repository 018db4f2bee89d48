package actions

import (
	_ "embed" // the pages
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"poolkeeper/configs"
	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/action"
	"poolkeeper/zkmodel/operate"
)

//go:embed form.html
var formText string

var formTemplate = layout.Parse(formText)

// sheet is what the form of an action has.
type sheet struct {
	Title  string // what is done, before the name of what it is done to
	Button string
	Reason bool
	For    bool
	Build  bool // one may be chosen
	In     bool // providers may be chosen
	Ticks  []tick
}

// tick is an option.
type tick struct{ Key, Text string }

// The options.
var (
	tickDelete = tick{"delete", "delete its images in the clouds, so that launchers leave it which know no verdicts"}
	tickBroken = tick{"broken", "also where the record cannot be decoded"}
)

// sheets are the forms, by the name of the action.
var sheets = map[string]sheet{
	"image-build":        {Title: "Build", Button: "Build now"},
	"image-build-cancel": {Title: "Cancel the build of", Button: "Cancel the build"},
	"image-pause":        {Title: "Pause", Button: "Pause", Reason: true, For: true},
	"image-unpause":      {Title: "Resume", Button: "Resume"},
	"image-rollback": {Title: "Roll back", Button: "Roll back", Reason: true, Build: true, In: true, Ticks: []tick{
		{"pin", "keep what serves then until it is released"}, tickDelete, {"release", "only release what is pinned, and do nothing else"},
	}},
	"image-reject":     {Title: "Reject", Button: "Reject", Reason: true, In: true, Ticks: []tick{tickDelete}},
	"image-promote":    {Title: "Promote", Button: "Promote", In: true},
	"dib-image-delete": {Title: "Delete", Button: "Delete the build", Ticks: []tick{{"pause", "pause the image first, so that the build before this one stays in use"}, tickBroken}},
	"image-delete":     {Title: "Delete", Button: "Delete the upload", Ticks: []tick{tickBroken}},
	"hold":             {Title: "Hold", Button: "Hold", Reason: true, For: true},
	"node-delete":      {Title: "Delete", Button: "Delete the node", Ticks: []tick{tickBroken}},
	"request-delete":   {Title: "Delete", Button: "Delete the request"},
	"provider-pause":   {Title: "Pause", Button: "Pause", Reason: true, For: true},
	"provider-drain":   {Title: "Drain", Button: "Drain", Reason: true, For: true},
	"provider-resume":  {Title: "Resume", Button: "Resume"},
}

// formView is the page of a form.
type formView struct {
	sheet

	Action, Target string
	Back           string
	Hidden         []field
	Order          formOrder
	Goes           []string // what goes with it
	Sure           bool     // it is to be confirmed
	Seen           string   // stands for Goes
	Wrong          string
	Form           string
	Command        string // that does the same
}

type field struct{ Key, Value string }

// formOrder is what was filled in.
type formOrder struct {
	Reason, For, Build, In string
	Ticked                 map[string]bool
}

// serveForm shows the form of an action; nothing is changed by it.
func (d *Desk) serveForm(w http.ResponseWriter, r *http.Request) {
	who, wrong := d.Identify(r)
	o, bad := d.order(r)
	a, known := action.Named(o.Action)
	switch {
	case who.Name == "" && html(r) && wrong == "":
		http.Redirect(w, r, loginPath+"?"+toQuery(r.URL.RequestURI()), http.StatusSeeOther)
	case who.Name == "":
		d.answerRefused(w, r, who, o, refusal{http.StatusUnauthorized, "log in at " + loginPath + " first"})
	case !known || bad != nil || o.Check() != nil:
		http.Error(w, "there is no such action, or nothing that it is for", http.StatusNotFound)
	case !who.May.Covers(a.Needs):
		http.Error(w, fmt.Sprintf("%s may %s, and %s needs %s", layout.Visible(who.Name), who.May, a.Name, a.Needs), http.StatusForbidden)
	default:
		d.showForm(w, r, http.StatusOK, who, o, "")
	}
}

// showForm shows the form of an action as it is filled in, with what goes.
func (d *Desk) showForm(w http.ResponseWriter, r *http.Request, status int, who Who, o action.Order, wrong string) {
	a, _ := action.Named(o.Action)
	v := &formView{
		sheet: sheets[o.Action], Action: o.Action, Target: strings.Replace(o.Target(), "/", " ", 1), Back: pageOf(o), Wrong: wrong, Form: who.form,
		Goes: d.preview(o), Sure: a.Needs == configs.MayDestroy, Command: command(a, o),
	}
	v.Seen = d.seal(o, v.Goes)
	v.Order = formOrder{Reason: o.Reason, Build: o.Build, In: strings.Join(o.Providers, " "), Ticked: map[string]bool{
		"delete": o.Delete, "broken": o.Broken, "pin": o.Pin, "release": o.Release, "pause": o.Pause,
	}}
	if o.Build != "" {
		v.Order.Build = o.Image + "-" + o.Build
	}
	if o.For > 0 {
		v.Order.For = o.For.String()
	}
	for _, kind := range a.Wants {
		switch kind {
		case "build": // goes with its image
		case "image":
			if slices.Contains(a.Wants, "build") {
				v.Hidden = append(v.Hidden, field{"build", o.Image + "-" + o.Build})
			} else {
				v.Hidden = append(v.Hidden, field{"image", o.Image})
			}
		default:
			v.Hidden = append(v.Hidden, field{kind, map[string]string{"upload": o.Upload, "provider": o.Provider, "node": o.Node, "request": o.Request}[kind]})
		}
	}
	d.Show(w, r, status, &layout.Page{
		Template: formTemplate, Title: v.Title + " " + v.Target, User: layout.Link{Text: who.Name, To: loginPath}, Body: v,
		Trail: []layout.Link{{Text: v.Target, To: v.Back}},
	})
}

// command is what a person would type for the same.
func command(a action.Action, o action.Order) string {
	text := "poolkeeper " + a.Name
	switch {
	case a.Name == "image-delete":
		return text + " --provider " + o.Provider + " --image " + o.Image + " --build-id " + o.Build + " --upload-id " + o.Upload
	case slices.Contains(a.Wants, "build"):
		return text + " " + o.Image + "-" + o.Build
	}
	return text + " " + o.Image + o.Node + o.Request + o.Provider
}

// links are what who may do on the page of a path.
func (d *Desk) links(path string, who Who) (list []layout.Link) {
	kind, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if name == "" || strings.Contains(name, "/") {
		return nil
	}
	add := func(text, name string, pairs ...string) {
		a, _ := action.Named(name)
		if !who.May.Covers(a.Needs) {
			return
		}
		values := url.Values{}
		for i := 0; i+1 < len(pairs); i += 2 {
			values.Set(pairs[i], pairs[i+1])
		}
		list = append(list, layout.Link{Text: text, To: actPrefix + name + "?" + values.Encode()})
	}
	switch kind {
	case "images":
		d.imageLinks(name, add)
	case "builds":
		d.buildLinks(name, add)
	case "nodes":
		add("Hold", "hold", "node", name)
		add("Delete", "node-delete", "node", name)
	case "requests":
		add("Delete", "request-delete", "request", name)
	case "providers":
		if d.paused(name) {
			add("Resume", "provider-resume", "provider", name)
		} else {
			add("Pause", "provider-pause", "provider", name)
		}
		add("Drain", "provider-drain", "provider", name)
	}
	return list
}

func (d *Desk) imageLinks(name string, add func(text, name string, pairs ...string)) {
	add("Build", "image-build", "image", name)
	add("Cancel the build", "image-build-cancel", "image", name)
	if i := d.image(name); i != nil && i.Paused {
		add("Resume", "image-unpause", "image", name)
	} else {
		add("Pause", "image-pause", "image", name)
	}
	add("Roll back", "image-rollback", "image", name)
}

func (d *Desk) buildLinks(name string, add func(text, name string, pairs ...string)) {
	image, build, err := zkmodel.ParseBuildName(name)
	if err != nil {
		return
	}
	add("Promote", "image-promote", "build", name)
	add("Reject", "image-reject", "build", name)
	add("Delete the build", "dib-image-delete", "build", name)
	i := d.image(image)
	if i == nil || i.Build(build) == nil {
		return
	}
	for _, u := range i.Build(build).Uploads {
		add("Delete from "+u.Provider+" ("+u.ID+")", "image-delete", "build", name, "provider", u.Provider, "upload", u.ID)
	}
}

// image is an image as the daemon sees it; nil where it does not.
func (d *Desk) image(name string) *zkmodel.Image {
	if d.Tree.Images == nil {
		return nil
	}
	images := d.Tree.Images()
	if at := slices.IndexFunc(images, func(i *zkmodel.Image) bool { return i.Name == name }); at >= 0 {
		return images[at]
	}
	return nil
}

func (d *Desk) paused(provider string) bool {
	return d.Tree.ProviderPauses != nil && slices.ContainsFunc(d.Tree.ProviderPauses(), func(p *zkmodel.ProviderPause) bool { return p.Provider == provider })
}

// nodes are those of a test, as far as the daemon follows them.
func (d *Desk) nodes(is func(*zkmodel.Node) bool) []*zkmodel.Node {
	if d.Tree.Nodes == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(d.Tree.Nodes()), func(n *zkmodel.Node) bool { return !is(n) })
}

// seal stands for what a form shows that an action is done to; what is confirmed has to be the same. What a
// provider has changes all the time: nobody could ever confirm it.
func (d *Desk) seal(o action.Order, goes []string) string {
	if o.Action == "provider-drain" {
		return ""
	}
	return d.sign("seen", o.Target()+"\n"+strings.Join(goes, "\n"))
}

// preview says what an action that destroys is done to, as the daemon sees it.
func (d *Desk) preview(o action.Order) (lines []string) {
	switch o.Action {
	case "node-delete":
		for _, n := range d.nodes(func(n *zkmodel.Node) bool { return n.ID == o.Node }) {
			line := fmt.Sprintf("node %s of %s is %s", n.ID, n.Provider, n.State)
			if n.AllocatedTo != "" {
				line += ", for request " + n.AllocatedTo
			}
			lines = append(lines, line)
		}
	case "request-delete":
		if d.Tree.Requests != nil {
			for _, q := range d.Tree.Requests() {
				if q.ID == o.Request {
					lines = append(lines, fmt.Sprintf("request %s of %s is %s: %s", q.ID, q.Requestor, q.State, strings.Join(q.NodeTypes, ", ")))
				}
			}
		}
	case "provider-drain":
		idle := d.nodes(func(n *zkmodel.Node) bool {
			return n.Provider == o.Provider && n.State == zkmodel.NodeReady && n.AllocatedTo == ""
		})
		lines = append(lines, fmt.Sprintf("idle nodes that are deleted: %d", len(idle)))
		left := operate.InProvider(d.nodes(func(*zkmodel.Node) bool { return true }), o.Provider)
		if states := operate.StatesOf(left); states != "" {
			lines = append(lines, "all nodes there: "+states)
		}
	default:
		lines = d.previewImage(o)
	}
	return lines
}

// previewImage says what serves, and what of a build goes.
func (d *Desk) previewImage(o action.Order) (lines []string) {
	i := d.image(o.Image)
	a, _ := action.Named(o.Action)
	if i == nil || a.Needs != configs.MayDestroy {
		return nil
	}
	for _, b := range i.Builds {
		if o.Build != "" && b.ID != o.Build {
			continue
		}
		for _, u := range b.Uploads {
			if o.Upload != "" && (u.ID != o.Upload || u.Provider != o.Provider) || len(o.Providers) > 0 && !slices.Contains(o.Providers, u.Provider) {
				continue
			}
			serves := i.Serving(u.Provider, zkmodel.Suspect)
			is := serves != nil && serves.Build == u.Build && serves.ID == u.ID
			if o.Build == "" && !is {
				continue
			}
			line := fmt.Sprintf("upload %s of build %s in %s is %s", u.ID, u.Build, u.Provider, u.State)
			if is {
				line += ", and serves there"
			}
			lines = append(lines, line)
		}
		if o.Build != "" && o.Upload == "" {
			lines = append([]string{fmt.Sprintf("build %s is %s", b.Name(), b.State)}, lines...)
		}
	}
	return lines
}
