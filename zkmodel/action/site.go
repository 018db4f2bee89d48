package action

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/configs/kit"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// Site does actions for people who reach it by a page of a daemon.
type Site struct {
	Client *recipe.Client
	Config func() *configs.Config // of this moment
	Job    func(cfg *configs.Config, image string) wave.Job
	Logger hclog.Logger
}

// Do does what an order asks for in who's name, and returns what it says of that, and what is to be known beside it.
//
// Errors: as Doer.Do; those of a session with ZooKeeper that is not there.
func (s *Site) Do(ctx context.Context, who string, o Order) (said, notes []string, err error) {
	session, err := s.Client.Session(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("nothing was changed: %w", err)
	}
	ctx, release := session.Bind(ctx)
	defer release()
	cfg := s.Config()
	d := &Doer{
		Store: zkmodel.NewStore(session, nil).WithCanaries(cfg.HasCanary()), Config: cfg, Who: operate.RequestorMark + who, Job: s.Job,
		Say:  func(line string) { said = append(said, line) },
		Note: func(line string) { notes = append(notes, line) },
	}
	err = d.Do(ctx, o)
	return said, notes, err
}

// Ltime is a logical time: who sees the tree as it is then sees all that was done before.
func (s *Site) Ltime(ctx context.Context) (int64, error) {
	session, err := s.Client.Session(ctx)
	if err != nil {
		return 0, err
	}
	return zkmodel.NewStore(session, nil).Ltime(ctx)
}

// Result is what came of what a person wanted.
type Result string

// The results.
const (
	Done    Result = "done"
	Failed  Result = "failed"
	Refused Result = "refused" // nothing was tried
)

// Audit is what is written down of what a person wanted from a page.
type Audit struct {
	Who       string // "" is nobody that is known
	Via       string // how that is known
	From      string // address and port
	Forwarded string // where the proxy says that it comes from
	Action    string
	Target    string
	Order     Order // empty where it was refused
	Result    Result
	Reason    string // why it failed or was refused
}

// Tell tells of it, where changes are told.
func (s *Site) Tell(ctx context.Context, a Audit) {
	if s.Client.Log() == nil {
		return
	}
	session, err := s.Client.Session(ctx)
	if err == nil {
		err = zkmodel.NewStore(session, nil).Tell(ctx, event.OperatorAction, a.Target, event.Data{
			"action": a.Action, "by": a.Who, "via": a.Via, "from": a.From, "forwarded": a.Forwarded, "result": string(a.Result), "reason": a.Reason,
			"said": a.Order.Reason, "options": strings.Join(a.Order.Options(), ", "),
		})
	}
	if err != nil {
		s.Logger.Warn("What was done from a page is not told", "action", a.Action, "target", a.Target, "error", err)
	}
}

// Target is what an order is for, as events name it.
func (o Order) Target() string {
	switch {
	case o.Upload != "":
		return path.Join("upload", o.Image+"-"+o.Build, o.Provider, o.Upload)
	case o.Build != "":
		return "build/" + o.Image + "-" + o.Build
	case o.Image != "":
		return "image/" + o.Image
	case o.Node != "":
		return "node/" + o.Node
	case o.Request != "":
		return "request/" + o.Request
	case o.Provider != "":
		return "provider/" + o.Provider
	}
	return ""
}

// ParseFor reads how long a pause or hold is to last.
func ParseFor(text string) (time.Duration, error) {
	d, err := kit.ParseDuration(text)
	if err != nil || d < time.Second {
		return 0, fmt.Errorf("%q is no time that something can last: expected at least 1s, such as 30m, 2h, 2d or 1w", text)
	}
	return d, nil
}
