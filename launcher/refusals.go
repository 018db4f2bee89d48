package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"path"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/supply"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Whoever meets a cloud that refuses writes what that teaches into the tree, where
// all launchers heed it; what becomes of it is decided in the package lesson.

// newLessons follows what clouds taught.
func newLessons(deps Deps) *recipe.Tree {
	return recipe.NewTree(deps.Client, zkmodel.RefusalsRoot, recipe.TreeOptions{
		Logger: deps.Logger.Named("refusals"),
		Filter: func(p string) recipe.Interest {
			if p == zkmodel.RefusalsRoot {
				return recipe.Children
			}
			return recipe.Data
		},
	})
}

// followLessons wakes us whenever somebody has learned something, until ctx ends.
func (l *Launcher) followLessons(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.lessons.Run(ctx) })
	group.Go(func() error {
		changes := l.lessons.Subscribe(path.Base)
		defer changes.Close()
		for {
			select {
			case <-changes.C():
				changes.Take()
				l.notify()
			case <-ctx.Done():
				return nil
			}
		}
	})
	return group.Wait()
}

// takeLessons hands to our clouds what the tree says.
func (l *Launcher) takeLessons() {
	for name, c := range l.clouds {
		if entry, there := l.lessons.Get(zkmodel.RefusalsPath(name)); there {
			c.Read(entry)
		}
	}
}

// refused learns from a refusal that a launch met, and tells all launchers before
// the node's record says that the launch is over: until then the launch counts.
func (s *session) refused(ctx context.Context, h *requestRun, n *nodeRun, reason error) {
	use := s.inUse(h.cloud, n.node.ID)
	known := h.cloud.Lessons().Lesson.Round
	learned := s.learn(ctx, h.cloud, func(l lesson.Lesson) (lesson.Lesson, bool) {
		return l.Refuse(lesson.Refusal{
			Asked: h.asked, Need: schedule.NodeResources(n.node, nil), Use: use,
			Late: !n.node.ExternalID.IsNull(), Reason: reason.Error(),
		}), true
	})
	level := hclog.Debug
	if learned.Round != known {
		level = hclog.Warn
	}
	s.log.Log(level, "Cloud refuses; what it holds is its limit until it is tried again", "provider", h.cloud.Section().Name,
		"holds", learned.Holds, "pause", learned.Pause(), "error", reason)
	if learned.Round == known || h.pool.Section.IgnoreProviderQuota {
		return
	}
	if err := s.store.ForgetLimits(ctx, h.cloud.Section().Name); err != nil && !errors.Is(err, context.Canceled) {
		s.log.Warn("Limits stay as they are", "provider", h.cloud.Section().Name, "error", err)
	}
}

// accepted learns from a machine that the cloud has accepted, once for each.
func (s *session) accepted(ctx context.Context, h *requestRun, n *nodeRun) {
	if n.accepted || h.asked.Kind != lesson.Trial {
		return
	}
	n.accepted = true
	held := schedule.Plus(schedule.Plus(nil, s.inUse(h.cloud, n.node.ID).Held), schedule.NodeResources(n.node, nil))
	s.learn(ctx, h.cloud, func(l lesson.Lesson) (lesson.Lesson, bool) { return l.Accept(h.asked, held) })
}

// learn changes what a cloud taught: here at once, then in the tree, which has the
// last word. It returns what is known then.
func (s *session) learn(ctx context.Context, c *supply.Provider, change func(lesson.Lesson) (lesson.Lesson, bool)) lesson.Lesson {
	local, news := change(c.Lessons().Lesson)
	if !news {
		return local
	}
	c.Heed(local)
	err := s.store.ChangeRefusals(ctx, c.Section().Name, func(old []byte) ([]byte, error) {
		var shared lesson.Lesson
		if len(old) > 0 && json.Unmarshal(old, &shared) != nil {
			shared = lesson.Lesson{} // nothing that we can read: begun anew
		}
		if next, news := change(shared); news {
			local = next
			return json.Marshal(next)
		}
		return old, nil
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("What a refusal taught is not shared", "provider", c.Section().Name, "error", err)
	}
	c.Heed(local)
	return local
}

// inUse is what is in a cloud now, but for one node.
func (s *session) inUse(c *supply.Provider, except string) lesson.Use {
	view := c.Lessons()
	all := schedule.Uses(s.own.Nodes(), map[string]bool{c.Section().Name: view.Lesson.Late}, s.now(), except)
	return *all[c.Section().Name]
}
