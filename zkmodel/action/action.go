// Package action is what people do with a site, each by the name of its command: the commands do it
// by this package, and so do the pages, so that both check, do and tell the same.
package action

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/wave"
)

// Order is one thing that is to be done. Which fields an action wants, Action.Wants says; the others
// are options of some of them.
type Order struct {
	Action string // the name of a command

	Image, Build, Upload, Provider, Node, Request string // a build by its id

	Providers []string      // of a verdict: where; none is everywhere
	Reason    string        // why, for all to see
	For       time.Duration // of a pause or hold: until it ends by itself; 0 is never
	Broken    bool          // of a deletion: also what cannot be decoded
	Pause     bool          // of a build's deletion: pause its image first
	Delete    bool          // of a verdict: delete the uploads
	Pin       bool          // of a rollback: keep what serves then
	Release   bool          // of a rollback: only release what is pinned
}

// Options are what an Order says beside what it is for and why, in words: pin, delete, in north.
func (o Order) Options() (words []string) {
	for word, is := range map[string]bool{"broken": o.Broken, "pause": o.Pause, "delete": o.Delete, "pin": o.Pin, "release": o.Release} {
		if is {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	for _, provider := range o.Providers {
		words = append(words, "in "+provider)
	}
	if o.For > 0 {
		words = append(words, "for "+o.For.String())
	}
	return words
}

// Action is one that there is.
type Action struct {
	Name string
	// Needs is what has to be allowed to who does it from a page.
	Needs configs.May
	// Wants are the kinds of things that an Order has to name: image, build, upload, provider, node, request.
	Wants []string

	do func(*Doer, context.Context, Order) error
}

// all are the actions. What takes something away, or decides what serves, is to destroy.
var all = []Action{
	{"image-build", configs.MayOperate, []string{"image"}, (*Doer).build},
	{"image-build-cancel", configs.MayOperate, []string{"image"}, (*Doer).cancelBuild},
	{"image-pause", configs.MayOperate, []string{"image"}, (*Doer).pauseImage},
	{"image-unpause", configs.MayOperate, []string{"image"}, (*Doer).unpauseImage},
	{"image-rollback", configs.MayDestroy, []string{"image"}, (*Doer).rollback},
	{"image-reject", configs.MayDestroy, []string{"image", "build"}, (*Doer).reject},
	{"image-promote", configs.MayDestroy, []string{"image", "build"}, (*Doer).promote},
	{"dib-image-delete", configs.MayDestroy, []string{"image", "build"}, (*Doer).deleteBuild},
	{"image-delete", configs.MayDestroy, []string{"provider", "image", "build", "upload"}, (*Doer).deleteUpload},
	{"hold", configs.MayOperate, []string{"node"}, (*Doer).hold},
	{"node-delete", configs.MayDestroy, []string{"node"}, (*Doer).deleteNode},
	{"request-delete", configs.MayDestroy, []string{"request"}, (*Doer).deleteRequest},
	{"provider-pause", configs.MayOperate, []string{"provider"}, (*Doer).pauseProvider},
	{"provider-drain", configs.MayDestroy, []string{"provider"}, (*Doer).drainProvider},
	{"provider-resume", configs.MayOperate, []string{"provider"}, (*Doer).resumeProvider},
}

// All are the actions that there are.
func All() []Action { return slices.Clone(all) }

// Named is an action by its name; false when there is none.
func Named(name string) (Action, bool) {
	at := slices.IndexFunc(all, func(a Action) bool { return a.Name == name })
	if at < 0 {
		return Action{}, false
	}
	return all[at], true
}

// whole returns the order with whole ids. What is broken may have any name, which is taken as it is.
func (o Order) whole() Order {
	if o.Broken {
		return o
	}
	for _, id := range []*string{&o.Build, &o.Upload, &o.Node, &o.Request} {
		*id = zkmodel.WholeID(*id)
	}
	return o
}

// Check says what is wrong with an order, without looking at the tree.
func (o Order) Check() error {
	a, ok := Named(o.Action)
	if !ok {
		return fmt.Errorf("there is no action %q", o.Action)
	}
	var wrong error
	for _, kind := range a.Wants {
		wrong = errors.Join(wrong, configs.CheckName(kind, o.target(kind)))
	}
	// What an action does not take is refused, or what is written down would name that instead.
	for _, kind := range []string{"image", "build", "upload", "provider", "node", "request"} {
		if o.target(kind) != "" && !slices.Contains(a.Wants, kind) && (kind != "build" || o.Action != "image-rollback") {
			wrong = errors.Join(wrong, fmt.Errorf("%s takes no %s", a.Name, kind))
		}
	}
	for _, name := range o.Providers {
		wrong = errors.Join(wrong, configs.CheckName("provider", name))
	}
	if o.Build != "" && !slices.Contains(a.Wants, "build") {
		wrong = errors.Join(wrong, configs.CheckName("build", o.Build))
	}
	if o.Release && (o.Pin || o.Delete || o.Build != "" || o.Reason != "") {
		wrong = errors.Join(wrong, errors.New("--release goes with --provider alone"))
	}
	return wrong
}

// target is the name of the thing of a kind.
func (o Order) target(kind string) string {
	return map[string]string{"image": o.Image, "build": o.Build, "upload": o.Upload, "provider": o.Provider, "node": o.Node, "request": o.Request}[kind]
}

// Doer does what one person asks for.
type Doer struct {
	Store  *zkmodel.Store
	Config *configs.Config
	Who    string // as operate.New has it
	// Job is the job of an image as a configuration has it.
	Job func(cfg *configs.Config, image string) wave.Job

	Say  func(line string) // takes what was done
	Note func(line string) // takes what is to be known beside it
}

// Do checks an order, and does it.
//
// Errors: in the words of the command, with what there is instead of what is not there.
func (d *Doer) Do(ctx context.Context, o Order) error {
	if err := o.Check(); err != nil {
		return err
	}
	o = o.whole()
	a, _ := Named(o.Action) // Check has found it
	err := a.do(d, ctx, o)
	if errors.Is(err, zkmodel.ErrNotFound) {
		err = fmt.Errorf("%w%s", err, Near(ctx, d.Store, d.Config, o))
	}
	return err
}

// operator does it with the tree.
func (d *Doer) operator() *operate.Operator { return operate.New(d.Store, d.Who) }

func (d *Doer) sayf(format string, args ...any)  { d.Say(fmt.Sprintf(format, args...)) }
func (d *Doer) notef(format string, args ...any) { d.Note(fmt.Sprintf(format, args...)) }

// noteUnended tells that nobody runs who would end what has a time.
func (d *Doer) noteUnended(ctx context.Context, limit time.Duration) {
	if text := Unended(ctx, d.Store, limit); text != "" {
		d.Note(text)
	}
}

// Unended says that no running daemon ends what has a time; "" if one does.
func Unended(ctx context.Context, store *zkmodel.Store, limit time.Duration) string {
	if limit == 0 {
		return ""
	}
	return unsupported(ctx, store, "what has a time ends")
}

// unsupported says that no running daemon supports something, and when it takes effect; "" if one does.
func unsupported(ctx context.Context, store *zkmodel.Store, effect string) string {
	daemons, err := store.Daemons(ctx)
	switch {
	case err != nil || slices.ContainsFunc(daemons, zkmodel.Daemon.IsPoolkeeper):
		return ""
	case len(daemons) == 0:
		return "no builder or launcher runs: " + effect + " when one does"
	}
	return "no running daemon supports this, all are Nodepool's: " + effect + " when a Poolkeeper daemon runs"
}
