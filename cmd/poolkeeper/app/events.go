package app

import (
	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/event/dispatch"
	"poolkeeper/zkmodel/recipe"
)

// EventOptions are those of a configuration; nil tells of nothing.
func EventOptions(cfg *configs.Config) *dispatch.Options {
	if cfg.Events == nil {
		return nil
	}
	options := &dispatch.Options{Keep: cfg.Events.Keep, Age: cfg.Events.Age}
	for _, s := range cfg.Events.Sinks {
		options.Sinks = append(options.Sinks, dispatch.Sink{
			Name: s.Name, Match: s.Match, Webhook: s.Webhook, Command: s.Command, File: s.File, Key: s.Key, Timeout: s.Timeout,
		})
	}
	for _, f := range cfg.Frozen {
		if f.Kind == configs.KindEventSink {
			options.Left, options.LeftOthers = append(options.Left, f.Name), options.LeftOthers || f.Name == ""
		}
	}
	return options
}

// tellsAs has the changes that a command makes told as this user's, where changes are told.
func tellsAs(client *recipe.Client, cfg *configs.Config) {
	if cfg.Events != nil {
		client.SetLog(recipe.NewLog(event.Root, "/poolkeeper/operator/"+Requestor()))
	}
}

// NewEvents makes a daemon's part in events.
func NewEvents(client *recipe.Client, p *zkmodel.Process, log hclog.Logger, daemon, host string) *dispatch.Service {
	return dispatch.New(dispatch.Deps{
		Client: client, Hold: p.Hold, Writer: "/poolkeeper/" + daemon + "/" + host, Member: daemon + " " + host, Logger: log,
	})
}
