package zkmodel

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// Daemon is a running builder or launcher, as it tells of itself.
type Daemon struct {
	Component
	Since time.Time // when it registered, in its present session
}

// Takes reports whether its program knows an operator's command.
func (d Daemon) Takes(verb string) bool {
	return d.Broken == nil && d.Instance != "" && slices.Contains(d.Commands, verb)
}

// Daemons lists the running builders and launchers, Nodepool's, too.
func (st *Store) Daemons(ctx context.Context) ([]Daemon, error) {
	var list []Daemon
	for _, kind := range []string{KindBuilder, KindLauncher} {
		members, err := recipe.Members(ctx, st.session, ComponentsRoot+"/"+kind)
		if err != nil {
			return nil, fmt.Errorf("list %s components: %w", kind, err)
		}
		for _, m := range members {
			c := DecodeComponent(m.Name, m.Data)
			if m.Err != nil {
				c.Broken = m.Err
			}
			c.Kind = kind
			list = append(list, Daemon{Component: *c, Since: m.Stat.Ctime})
		}
	}
	return list, nil
}

// Place is the use of something that only some, or one, may use at a time.
type Place struct {
	Share  string // as ShareName names it
	Kind   string // of the daemon
	Host   string // of the daemon, as it names itself
	Reason string // what for; "" when it does not say
	Since  time.Time
	Waits  bool // it has no place yet
}

// ClaimText is what a claim at BuildLimitPath or UploadLimitPath tells people: whose it
// is, and what for.
func ClaimText(host, reason string) string { return host + " " + reason }

// Places lists who uses, or waits for, a place of the semaphores of builders, of which
// there are so many by path, and who holds the quota of a provider.
func (st *Store) Places(ctx context.Context, limits map[string]int) ([]Place, error) {
	var list []Place
	for _, dir := range []string{BuildLimitPath, UploadLimitPath} {
		claims, err := recipe.Claims(ctx, st.session, dir)
		if err != nil {
			return nil, fmt.Errorf("list claims at %s: %w", dir, err)
		}
		used := 0
		for _, c := range claims {
			used += c.Weight
			host, reason, _ := strings.Cut(c.Identifier, " ")
			list = append(list, Place{Share: ShareName(dir), Kind: KindBuilder, Host: host, Reason: reason, Since: c.Since, Waits: used > limits[dir]})
		}
	}
	providers, err := st.session.Children(ctx, path.Dir(QuotaLockPath("any")))
	if err != nil && !errors.Is(err, recipe.ErrNoNode) {
		return nil, fmt.Errorf("list quotas: %w", err)
	}
	slices.Sort(providers)
	for _, provider := range providers {
		line, err := recipe.Contenders(ctx, st.session, QuotaLockPath(provider))
		if err != nil {
			return nil, fmt.Errorf("list who holds the quota of %s: %w", provider, err)
		}
		for i, c := range line {
			list = append(list, Place{
				Share: ShareName(QuotaLockPath(provider)), Kind: KindLauncher, Host: c.Identifier, Reason: "launches nodes", Since: c.Since, Waits: i > 0,
			})
		}
	}
	return list, nil
}
