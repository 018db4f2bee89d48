package actions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"poolkeeper/configs"
	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/action"
	"poolkeeper/zkmodel/history"
)

// refusal is why a request is not done.
type refusal struct {
	status int
	text   string
}

// serveAct does what a form, or a program, asks for.
func (d *Desk) serveAct(w http.ResponseWriter, r *http.Request) {
	who, wrong := d.Identify(r)
	o, bad := d.order(r)
	if no := d.check(r, who, wrong, o, bad); no.status != 0 {
		d.refuse(r, who, o.Action, o.Target(), no.text)
		d.answerRefused(w, r, who, o, no)
		return
	}
	a, _ := action.Named(o.Action) // check has found it
	if a.Needs == configs.MayDestroy && r.PostFormValue("sure") != "yes" {
		if html(r) {
			d.showForm(w, r, http.StatusOK, who, o, "")
			return
		}
		text := "nothing was changed: with sure=yes it is done. " + strings.Join(d.preview(o), "\n")
		http.Error(w, text, http.StatusConflict)
		return
	}
	if seen := r.PostFormValue("seen"); a.Needs == configs.MayDestroy && seen != "" && seen != d.seal(o, d.preview(o)) {
		d.showForm(w, r, http.StatusConflict, who, o, "nothing was changed: what it is done to is another by now, or was only chosen on the form. Look at it, and confirm that")
		return
	}
	select {
	case d.places <- struct{}{}:
		defer func() { <-d.places }()
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many actions at once", http.StatusServiceUnavailable)
		return
	}
	// Who goes away in the middle has it done to its end, which is written down.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), actPatience)
	defer cancel()
	said, notes, err := d.Site.Do(ctx, who.Name, o)
	done := d.audit(r, who, o.Action, o.Target())
	done.Order, done.Result = o, action.Done
	if err != nil {
		done.Result, done.Reason = action.Failed, err.Error()
		d.log(done, "Action failed", "error", err)
	} else {
		d.log(done, "Action done", "reason", o.Reason)
	}
	d.publish(ctx, done)
	d.answer(w, r, who, o, slices.Concat(said, notes), err)
}

// publish tells of what a person who is known wanted, and keeps it.
func (d *Desk) publish(ctx context.Context, a action.Audit) {
	if a.Who == "" {
		return // anybody could fill the tree by it
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	d.Site.Tell(ctx, a)
	if d.Past == nil {
		return
	}
	if err := d.Past.Add(d.entry(a)); err != nil {
		d.Logger.Warn("What was done from a page is not in the history", "action", a.Action, "target", a.Target, "error", err)
	}
}

// entry is what the history has of it.
func (d *Desk) entry(a action.Audit) history.Entry {
	now := d.Now().UTC()
	_, id, _ := strings.Cut(a.Target, "/")
	e := history.Entry{
		Kind: history.Action, ID: id, Became: a.Action, Outcome: history.Succeeded, Reason: a.Order.Reason, Begun: now, Ended: now, Gone: now,
		Times: []history.Moment{{State: a.Action, At: now}}, Image: a.Order.Image, BuildID: a.Order.Build, Provider: a.Order.Provider,
		Requestor: a.Who, Host: a.From,
	}
	switch a.Result {
	case action.Failed:
		e.Outcome, e.Reason = history.Failed, a.Reason
	case action.Refused:
		e.Outcome, e.Reason = history.None, "refused: "+a.Reason
	case action.Done:
	}
	return e
}

// pastOf is what was done to what the page of a path is about.
func pastOf(path string) string {
	_, id, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	values := url.Values{"kind": {string(history.Action)}, "last": {"30d"}}
	if strings.HasPrefix(path, "/images/") { // with its builds and uploads
		values.Set("image", id)
	} else {
		values.Set("id", id)
	}
	return "/history?" + values.Encode()
}

// order reads what is asked for. The error says what of it cannot be read.
func (d *Desk) order(r *http.Request) (action.Order, error) {
	o := action.Order{Action: strings.TrimPrefix(r.URL.Path, actPrefix)}
	if err := r.ParseForm(); err != nil {
		return o, fmt.Errorf("the form cannot be read: %w", err)
	}
	values := r.Form
	if r.Method == http.MethodPost {
		values = r.PostForm
	}
	o.Image, o.Upload, o.Provider, o.Node, o.Request = values.Get("image"), values.Get("upload"), values.Get("provider"), values.Get("node"), values.Get("request")
	o.Reason = strings.TrimSpace(values.Get("reason"))
	o.Providers = slices.DeleteFunc(slices.Clone(values["in"]), func(s string) bool { return s == "" })
	o.Pause, o.Delete, o.Pin, o.Release, o.Broken = values.Has("pause"), values.Has("delete"), values.Has("pin"), values.Has("release"), values.Has("broken")
	var err error
	if build := values.Get("build"); build != "" {
		var image string
		image, o.Build, err = zkmodel.ParseBuildName(build)
		if err == nil && o.Image != "" && o.Image != image {
			err = fmt.Errorf("build %s is none of image %s", build, o.Image)
		}
		o.Image = cmp.Or(o.Image, image)
	}
	if utf8.RuneCountInString(o.Reason) > maxText {
		err = errors.Join(err, fmt.Errorf("reason: expected at most %d characters", maxText))
	}
	if span := strings.TrimSpace(values.Get("for")); span != "" {
		limit, bad := action.ParseFor(span)
		o.For, err = limit, errors.Join(err, bad)
	}
	return o, err
}

// check says why a request is not done; a status of 0 is that it is.
func (d *Desk) check(r *http.Request, who Who, wrong string, o action.Order, bad error) refusal {
	a, known := action.Named(o.Action)
	switch err := d.cross.Check(r); {
	case err != nil:
		return refusal{http.StatusForbidden, errElsewhere}
	case wrong == tooMany:
		return refusal{http.StatusTooManyRequests, tooMany}
	case who.Name == "":
		text := "nobody is logged in: a token of webapp.tokens is wanted, as bearer token or at " + loginPath
		if wrong != "" {
			text = wrong
		}
		return refusal{http.StatusUnauthorized, text}
	case who.reads:
		return refusal{http.StatusForbidden, "a password of a browser only reads: send the token as bearer token, or log in at " + loginPath}
	case !who.carries(r.PostFormValue("form")):
		return refusal{http.StatusForbidden, errElsewhere}
	case !known:
		return refusal{http.StatusNotFound, fmt.Sprintf("there is no action %.40q", o.Action)}
	case !who.May.Covers(a.Needs):
		return refusal{http.StatusForbidden, fmt.Sprintf("%s may %s, and %s needs %s", who.Name, who.May, a.Name, a.Needs)}
	}
	if err := errors.Join(bad, o.Check()); err != nil {
		return refusal{http.StatusBadRequest, err.Error()}
	}
	return refusal{}
}

// answerRefused says why nothing was done.
func (d *Desk) answerRefused(w http.ResponseWriter, r *http.Request, who Who, o action.Order, no refusal) {
	switch {
	case no.status == http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "60")
	case no.status == http.StatusUnauthorized && html(r):
		d.showLogin(w, r, no.status, no.text)
		return
	case no.status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="poolkeeper"`)
	}
	if _, known := action.Named(o.Action); known && who.Name != "" && html(r) {
		d.showForm(w, r, no.status, who, o, no.text)
		return
	}
	http.Error(w, layout.Visible(no.text), no.status)
}

// answer says what came of it: on the page of what it was done to, or in text.
func (d *Desk) answer(w http.ResponseWriter, r *http.Request, who Who, o action.Order, lines []string, err error) {
	if html(r) {
		if err != nil {
			d.showForm(w, r, http.StatusConflict, who, o, strings.Join(append(lines, err.Error()), "\n"))
			return
		}
		if len(lines) == 0 {
			lines = []string{o.Action + " " + o.Target() + ": done"}
		}
		d.seen(r)
		to := pageOf(o) + "?" + url.Values{"told": {d.told.keep(who, layout.Told{Lines: lines})}}.Encode()
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err != nil {
		lines = append(lines, err.Error())
		w.WriteHeader(http.StatusConflict)
	}
	for _, line := range lines {
		fmt.Fprintln(w, layout.Visible(line))
	}
}

// seen waits a moment until pages show what was done.
func (d *Desk) seen(r *http.Request) {
	if d.Tree.WaitFor == nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if at, err := d.Site.Ltime(ctx); err == nil {
		_ = d.Tree.WaitFor(ctx, at) // else the page shows it a little later
	}
}

// pageOf is the page to go on with.
func pageOf(o action.Order) string {
	switch {
	case o.Node != "":
		return "/nodes/" + url.PathEscape(o.Node)
	case o.Request != "":
		return "/requests/" + url.PathEscape(o.Request)
	case o.Image == "":
		return "/providers/" + url.PathEscape(o.Provider)
	case o.Build != "" && o.Action != "image-rollback":
		return "/builds/" + url.PathEscape(o.Image+"-"+o.Build)
	}
	return "/images/" + url.PathEscape(o.Image)
}
