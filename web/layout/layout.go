// Package layout is what all pages share: one frame with header, navigation, style and script,
// the policy that allows nothing else, and how times, sizes and states are shown.
package layout

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the frame's parts
	"encoding/base64"
	"fmt"
	"html/template"
	"sync"
	"time"

	"poolkeeper/zkmodel/listing"
)

//go:embed layout.html
var frameText string

//go:embed style.css
var style string

//go:embed page.js
var pageScript string

//go:embed log.js
var logScript string

// script is that of all pages.
var script = pageScript + logScript

// Policy is the content security policy of all pages: their own style and script by hash, what
// this server answers, and nothing else.
func Policy() string {
	return "default-src 'none'; style-src '" + hash(style) + "'; script-src '" + hash(script) + "'; " +
		"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Link is a text, and where it leads; "" leads nowhere.
type Link struct{ Text, To string }

// Site is who serves the pages.
type Site struct {
	Daemon, Host, Version string
}

// Title is in the title of the window.
func (s Site) Title() string { return "Poolkeeper " + s.Name() }

// Name says which daemon it is, and on which host.
func (s Site) Name() string { return listing.Words(" on ", s.Daemon, s.Host) }

// Status is how the daemon is as a page is made.
type Status struct {
	Time     time.Time
	Refresh  int    // seconds until it is loaded again without a script; 0 is never
	NotReady string // why the daemon is not ready
	Stale    string // why what is shown may be old
}

// Now is the time as the frame shows it.
func (s Status) Now() When { return Moment(s.Time, s.Time) }

// Page is one page.
type Page struct {
	Template *Template
	Title    string // of the page; "" is the site's alone
	Section  string // the path in the navigation that it belongs to
	Trail    []Link // the pages above it
	Query    string // what was searched for
	Count    int    // what the title of the window counts; 0 is nothing
	User     Link   // who reads it, or the way to say so; "" is nobody, and no way
	Actions  []Link // what that one may do here
	Told     *Told  // what came of what was done last
	// Live are the parts of the tree that the page is made of, as /live names them; "" is none. When
	// one changes, the elements that have an id and data-part are replaced by those of the page as it is.
	Live string
	// Body is what the page's own template is given: a pointer to a struct of texts that are
	// the page's own. What of them moves a cursor, or is too long, is replaced.
	Body any
}

// Told is what came of something that was done.
type Told struct{ Lines []string }

// Layout makes pages.
type Layout struct {
	Site   Site
	Nav    []Link
	Search string   // the path of the page that searches; "" is none
	Links  []string // of listings, in the footer
}

// Template is a page's own part.
type Template struct{ of func() *template.Template }

// Parse reads the templates of a page or of several, of which "body" is the page's part. The
// frame's are there: "when" and "moment" for a When, "state" for a Badge, "link" for a Link.
// They are read as the first page is made: commands, which make none, begin sooner.
func Parse(texts ...string) *Template {
	raw := template.FuncMap{ // our own, as they are
		"style":  func() template.CSS { return template.CSS(style) },
		"script": func() template.JS { return template.JS(script) },
	}
	return &Template{sync.OnceValue(func() *template.Template {
		t := template.Must(template.New("layout").Funcs(raw).Parse(frameText))
		for _, text := range texts {
			template.Must(t.Parse(text))
		}
		return t
	})}
}

// Render makes a page.
func (l *Layout) Render(p *Page, s Status) ([]byte, error) {
	s.NotReady, s.Stale = Visible(s.NotReady), Visible(s.Stale)
	p.Title, p.Query = Visible(p.Title), Visible(p.Query)
	clean(p.Trail)
	clean(&p.User)
	clean(p.Actions)
	clean(p.Told)
	clean(p.Body)
	var out bytes.Buffer
	if err := p.Template.of().Execute(&out, frame{l, p, s}); err != nil {
		return nil, fmt.Errorf("write page %q: %w", p.Title, err)
	}
	return out.Bytes(), nil
}

// frame is what the frame's template is given.
type frame struct {
	*Layout

	Page   *Page
	Status Status
}
