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

// IsPoolkeeper returns whether the daemon is one of Poolkeeper, of any release; Nodepool's write none of these keys.
func (d Daemon) IsPoolkeeper() bool {
	return d.Instance != "" || d.Providers != nil || len(d.Knows) > 0
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

// builderIDs holds the locks of builder ids, configurationLock is that of pushes (package fleet).
const (
	builderIDs        = OwnRoot + "/builder-ids"
	configurationLock = OwnRoot + "/fleet/lock"
)

// PlacesPaths are those below which changes what Places lists.
func PlacesPaths() []string {
	return []string{BuildLimitPath, UploadLimitPath, path.Dir(QuotaLockPath("any")), builderIDs, configurationLock}
}

// Places lists who uses, or waits for, a place of the semaphores of builders, of which
// there are so many by path, who holds the quota of a provider or works under a builder id,
// and who pushes a configuration.
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
	for _, locks := range []struct {
		dir  string // of locks
		tell func(c recipe.Contender) Place
	}{
		{path.Dir(QuotaLockPath("any")), func(c recipe.Contender) Place {
			return Place{Kind: KindLauncher, Host: c.Identifier, Reason: "launches nodes"}
		}},
		{builderIDs, func(c recipe.Contender) Place {
			owner := DecodeBuilderOwner(c.Identifier, 0)
			return Place{Kind: KindBuilder, Host: owner.Host, Reason: "its images-dir is " + owner.ImagesDir}
		}},
		{path.Dir(configurationLock), func(c recipe.Contender) Place {
			return Place{Kind: "command", Host: c.Identifier, Reason: "pushes a configuration"}
		}},
	} {
		names, err := st.session.Children(ctx, locks.dir)
		if err != nil && !errors.Is(err, recipe.ErrNoNode) {
			return nil, fmt.Errorf("list locks at %s: %w", locks.dir, err)
		}
		slices.Sort(names)
		for _, name := range names {
			at := locks.dir + "/" + name
			if locks.dir == path.Dir(configurationLock) && at != configurationLock {
				continue
			}
			line, err := recipe.Contenders(ctx, st.session, at)
			if err != nil {
				return nil, fmt.Errorf("list who holds %s: %w", at, err)
			}
			for i, c := range line {
				place := locks.tell(c)
				place.Share, place.Since, place.Waits = ShareName(at), c.Since, i > 0
				list = append(list, place)
			}
		}
	}
	return list, nil
}
