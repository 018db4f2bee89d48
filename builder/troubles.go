package builder

import (
	"fmt"
	"slices"
	"strings"

	"poolkeeper/builder/plan"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// trouble notes that a provider cannot be used, and why, or with nil that it can: in
// the metrics, and in our record among the components, where the page and explain of
// any host find it.
func (b *Builder) trouble(provider string, err error) {
	usable := 1.0
	if err != nil {
		usable = 0
	}
	b.metrics.usable.WithLabelValues(provider).Set(usable)
	b.self.Trouble(provider, err)
	b.news.note(provider, err)
}

// knowProviders has the metrics and our record tell of the providers of a
// configuration, and of no others.
func (b *Builder) knowProviders(cfg *configs.Config) {
	b.metrics.usable.Reset()
	var names []string
	for i := range cfg.Providers {
		names = append(names, cfg.Providers[i].Name)
	}
	troubled := b.self.OnlyOf(names)
	b.news.only(names)
	for _, name := range names {
		usable := 1.0
		if slices.Contains(troubled, name) {
			usable = 0
		}
		b.metrics.usable.WithLabelValues(name).Set(usable)
	}
}

// hindered says of the providers of an image which of them a builder cannot use, and of
// what is to be done there that it waits for that.
func (e *Explanation) hindered(cfg *configs.Config, builders []*zkmodel.Component, host string) {
	for _, p := range cfg.ProvidersOf(e.Image) {
		if why := troubleOf(p.Name, builders, host); why != "" {
			e.Verdicts = append(e.Verdicts, plan.Verdict{Subject: "upload to " + p.Name, Rule: "provider", Speaks: plan.Against, Detail: why})
		}
	}
	for i, a := range e.Actions {
		if why := troubleOf(a.Provider, builders, host); why != "" {
			e.Actions[i].Why += "; it waits: " + why
		}
	}
}

// troubleOf is why builders cannot use a provider: in the words of a host's, or else
// of any other that runs.
func troubleOf(provider string, builders []*zkmodel.Component, host string) string {
	short, _, _ := strings.Cut(host, ".")
	told := ""
	for _, c := range builders {
		why := c.Troubles[provider]
		ours := c.Hostname == host || c.Hostname == short
		if why != "" && (told == "" || ours) {
			told = fmt.Sprintf("the builder on %s cannot use the provider: %s", c.Hostname, why)
		}
	}
	return told
}
