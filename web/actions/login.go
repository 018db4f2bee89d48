package actions

import (
	_ "embed" // the pages
	"net/http"
	"net/url"
	"strings"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel/action"
)

//go:embed login.html
var loginText string

var loginTemplate = layout.Parse(loginText)

// loginView is the page of who one is.
type loginView struct {
	Name, May, Via string
	Form           string
	To             string
	Wrong          string
	Proxy, Tokens  bool
	Plain          bool // what is typed crosses the network as it is
}

// toQuery is the query that says where to go on.
func toQuery(to string) string { return url.Values{"to": {to}}.Encode() }

// onward is where to go on; only this server's own pages.
func onward(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "//") || strings.Contains(to, `\`) {
		return "/"
	}
	return u.RequestURI()
}

func (d *Desk) serveLogin(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		d.showLogin(w, r, http.StatusOK, "")
		return
	}
	if err := d.cross.Check(r); err != nil {
		d.refuse(r, Who{}, "login", "", err.Error())
		d.showLogin(w, r, http.StatusForbidden, errElsewhere)
		return
	}
	if !d.door.open(r) {
		w.Header().Set("Retry-After", "60")
		d.showLogin(w, r, http.StatusTooManyRequests, tooMany)
		return
	}
	given := strings.TrimSpace(r.PostFormValue("token"))
	for _, t := range d.Access().Tokens {
		if t.Is(given) {
			d.setCookie(w, r, d.sessions.begin(t.Name, t.Hash))
			d.note(r, Who{Name: t.Name, Via: "token"}, "login", "")
			http.Redirect(w, r, onward(r.PostFormValue("to")), http.StatusSeeOther)
			return
		}
	}
	d.door.wrong(r)
	d.refuse(r, Who{}, "login", "", "no such token")
	d.showLogin(w, r, http.StatusUnauthorized, "there is no such token")
}

// showLogin shows who one is, or asks for that.
func (d *Desk) showLogin(w http.ResponseWriter, r *http.Request, status int, wrong string) {
	access := d.Access()
	who, why := d.Identify(r)
	if wrong == "" && r.Header.Get("Authorization") == "" {
		wrong = why
	}
	v := &loginView{
		Name: who.Name, May: string(who.May), Via: who.Via, Wrong: wrong, To: onward(r.FormValue("to")), Tokens: len(access.Tokens) > 0,
		Proxy: access.ProxyUser != nil, Plain: r.TLS == nil && r.Header.Get("X-Forwarded-Proto") != "https" && !address(r).IsLoopback(),
	}
	if who.Via == "session" {
		v.Form = who.form
	}
	d.Show(w, r, status, &layout.Page{Template: loginTemplate, Title: "Log in", Body: v})
}

func (d *Desk) serveLogout(w http.ResponseWriter, r *http.Request) {
	who, _ := d.Identify(r)
	switch cookie, err := r.Cookie(d.cookie()); {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	case err != nil || who.Via != "session":
	case d.cross.Check(r) != nil || !who.carries(r.PostFormValue("form")):
		d.refuse(r, who, "logout", "", errElsewhere)
		http.Error(w, errElsewhere, http.StatusForbidden)
		return
	default:
		d.sessions.end(cookie.Value)
		d.setCookie(w, r, "")
		d.note(r, who, "logout", "")
	}
	http.Redirect(w, r, loginPath, http.StatusSeeOther)
}

// errElsewhere says why what comes from another page is not done.
const errElsewhere = "the form is not of this page, or is older than the daemon: open it here again"

// audit is what the log has of what a person wanted.
func (d *Desk) audit(r *http.Request, who Who, name, target string) action.Audit {
	a := action.Audit{Who: who.Name, Via: who.Via, Action: brief(name), Target: brief(target), From: r.RemoteAddr}
	if p := d.Access().ProxyUser; p != nil && proxied(r, p) {
		// Each proxy adds whom it heard, by another line of the header, too: what the last one says, which alone is
		// believed, is at the end.
		way := strings.Join(r.Header.Values("X-Forwarded-For"), ", ")
		a.Forwarded = brief(way[max(0, len(way)-mostBrief):])
	}
	return a
}

// mostBrief is as much as is written down of what anybody can send.
const mostBrief = 500

// brief is the begin of what anybody can send.
func brief(text string) string {
	return layout.Visible(strings.ToValidUTF8(text[:min(len(text), mostBrief)], ""))
}

// log is the audit line.
func (d *Desk) log(a action.Audit, line string, more ...any) {
	log := d.Logger.Named("audit").With("action", a.Action, "client", a.From)
	if a.Who != "" {
		log = log.With("who", a.Who, "via", a.Via)
	}
	if a.Target != "" {
		log = log.With("target", a.Target)
	}
	if options := a.Order.Options(); len(options) > 0 {
		log = log.With("options", options)
	}
	if a.Forwarded != "" {
		log = log.With("forwarded", a.Forwarded)
	}
	log.Info(line, more...)
}

func (d *Desk) note(r *http.Request, who Who, name, target string) {
	d.log(d.audit(r, who, name, target), "Action done")
}

// refuse writes down what was refused; of a person who is known it is told, too, as long as they are not too many.
func (d *Desk) refuse(r *http.Request, who Who, name, target, why string) {
	a := d.audit(r, who, name, target)
	a.Result, a.Reason = action.Refused, why
	d.log(a, "Action refused, nothing was changed", "reason", why)
	if d.refusals.AllowN(d.Now(), 1) { // another page could have a browser send any number
		d.publish(r.Context(), a)
	}
}
