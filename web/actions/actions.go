// Package actions is what people do on the pages: who they are, what they may, the forms, and an audit line of each.
package actions

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"poolkeeper/configs"
	"poolkeeper/web/layout"
	"poolkeeper/web/site"
	"poolkeeper/zkmodel/action"
	"poolkeeper/zkmodel/history"
)

// Site is where actions are done. An action.Site is one.
type Site interface {
	// Do does what an order asks for, and returns what it says of that, and what is to be known beside it.
	Do(ctx context.Context, who string, o action.Order) (said, notes []string, err error)
	// Ltime is a logical time by which all that was done is seen.
	Ltime(ctx context.Context) (int64, error)
	// Tell tells, where changes are told, what came of what a person wanted.
	Tell(ctx context.Context, a action.Audit)
}

// Options say who may act, and where.
type Options struct {
	Site   Site
	Access func() *configs.WebApp // of this moment
	Past   *history.Store         // keeps what those who are known wanted; nil keeps none
	// KnownHost reports whether a request names this daemon as its host.
	KnownHost func(r *http.Request) bool
	Tree      site.Tree
	Daemon    string // what serves this: its cookie is its own
	Logger    hclog.Logger
	Now       func() time.Time
	// Show sends a page.
	Show func(w http.ResponseWriter, r *http.Request, status int, p *layout.Page)
}

// Bounds of what is taken.
const (
	maxForm     = 64 << 10 // bytes
	maxText     = 1000     // characters of a reason
	maxAtATime  = 4        // actions
	actPatience = 25 * time.Second

	refusedBurst = 200              // refusals that are told at once
	refusedEvery = 10 * time.Second // and then one each
)

// Desk takes what people do on pages. A nil Desk takes nothing.
type Desk struct {
	Options

	door     door
	sessions sessions
	told     told
	cross    *http.CrossOriginProtection
	places   chan struct{} // a place for each action that is done
	key      []byte        // of what forms carry
	refusals *rate.Limiter // of those that are told
}

// New makes a Desk.
func New(o Options) *Desk {
	d := &Desk{Options: o, cross: http.NewCrossOriginProtection(), places: make(chan struct{}, maxAtATime), key: make([]byte, 32), refusals: rate.NewLimiter(rate.Every(refusedEvery), refusedBurst)}
	_, _ = rand.Read(d.key) // it never fails
	d.sessions.now, d.told.now, d.door.now = o.Now, o.Now, o.Now
	return d
}

// Paths of the desk.
const (
	loginPath  = "/login"
	logoutPath = "/logout"
	actPrefix  = "/act/"
)

// Takes reports whether a request is for the desk: where nobody may do anything it has no path.
func (d *Desk) Takes(r *http.Request) bool {
	if d == nil || !d.Access().Acts() {
		return false
	}
	return r.URL.Path == loginPath || r.URL.Path == logoutPath || strings.HasPrefix(r.URL.Path, actPrefix)
}

// ServeHTTP answers what Takes has taken.
func (d *Desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	// By no-referrer browsers hide from which page a form is sent, which is to be seen here.
	w.Header().Set("Referrer-Policy", "same-origin")
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "GET, HEAD and POST only", http.StatusMethodNotAllowed)
	case r.URL.Path == loginPath:
		d.serveLogin(w, r)
	case r.URL.Path == logoutPath:
		d.serveLogout(w, r)
	case r.Method == http.MethodPost:
		d.serveAct(w, r)
	default:
		d.serveForm(w, r)
	}
}

// Dress gives a page what the one who asks for it may do there, what came of what was done last, and the
// way to log in or out.
func (d *Desk) Dress(r *http.Request, p *layout.Page) {
	if d == nil || !d.Access().Acts() {
		return
	}
	who, _ := d.Identify(r)
	if who.Name == "" {
		p.User = layout.Link{Text: "Log in", To: loginPath + "?" + toQuery(r.URL.RequestURI())}
		if d.links(r.URL.Path, Who{May: configs.MayDestroy}) != nil {
			p.Actions = []layout.Link{{Text: "Log in to do something", To: p.User.To}}
		}
		return
	}
	p.User = layout.Link{Text: who.Name, To: loginPath}
	p.Told = d.told.of(who, r.URL.Query().Get("told"))
	if p.Actions = d.links(r.URL.Path, who); d.Past != nil && p.Actions != nil {
		p.Actions = append(p.Actions, layout.Link{Text: "What was done", To: pastOf(r.URL.Path)})
	}
}

// LogsIn reports whether a request that may not be answered is a person's who can log in.
func (d *Desk) LogsIn(r *http.Request) bool {
	return d != nil && d.Access().Acts() && html(r) && r.Header.Get("Authorization") == ""
}

// Login leads to the page to log in on, and back.
func (d *Desk) Login(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, loginPath+"?"+toQuery(r.URL.RequestURI()), http.StatusSeeOther)
}

// Refuses answers a request from where too many wrong tokens came, and reports that it has.
func (d *Desk) Refuses(w http.ResponseWriter, wrong string) bool {
	if wrong == tooMany {
		w.Header().Set("Retry-After", "60")
		http.Error(w, wrong, http.StatusTooManyRequests)
	}
	return wrong == tooMany
}

// html reports whether a request wants a page rather than text.
func html(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }
