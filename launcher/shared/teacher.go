package shared

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
)

// Teacher learns from what launches meet in clouds, and tells all launchers.
type Teacher struct {
	Records Records
	// Nodes are those in the tree and in our hands.
	Nodes func() []*zkmodel.Node
	Now   func() time.Time
	Log   hclog.Logger
}

// Records is where lessons and limits are written; *zkmodel.Store is one.
type Records interface {
	ChangeRefusals(ctx context.Context, provider string, change func(old []byte) ([]byte, zkmodel.Turn, error)) error
	ForgetLimits(ctx context.Context, provider string) error
}

// Cloud is one that a launch asked for a machine; *supply.Provider is one.
type Cloud interface {
	Section() configs.Provider
	Lessons() supply.Taught
	Heed(l lesson.Lesson)
	// ZonesOf are the availability zones that the nodes of a pool are spread over.
	ZonesOf(pool string) []string
}

// Refused learns from a refusal that the launch of a node met, and tells all launchers
// before the node's record says that the launch is over: until then the launch counts.
// limited says that the cloud's own limits are heeded: they are asked for anew then.
func (t *Teacher) Refused(ctx context.Context, c Cloud, asked lesson.Asked, n *zkmodel.Node, limited bool, reason error) {
	zone := n.AZ
	if zones := c.ZonesOf(n.Pool); errors.Is(reason, providers.ErrCapacity) && slices.Contains(zones, zone) {
		taught := t.learn(ctx, c, func(l lesson.Lesson) (lesson.Lesson, bool) { return l.RefuseZone(zone), true })
		if slices.ContainsFunc(zones, func(z string) bool { return !c.Lessons().Avoids(z, t.Now()) }) {
			t.Log.Info("Availability zone lacks capacity; other zones are used for a while", "provider", c.Section().Name, "zone", zone,
				"pause", taught.ZonePause(zone), "error", reason)
			return
		}
	}
	use := t.inUse(c, n.ID)
	known := c.Lessons().Lesson.Round
	learned := t.learn(ctx, c, func(l lesson.Lesson) (lesson.Lesson, bool) {
		return l.Refuse(lesson.Refusal{
			Asked: asked, Need: schedule.NodeResources(n, nil), Use: use,
			Late: !n.ExternalID.IsNull(), Reason: reason.Error(),
		}), true
	})
	level := hclog.Debug
	if learned.Round != known {
		level = hclog.Warn
	}
	t.Log.Log(level, "Cloud refuses; what it holds is its limit until it is tried again", "provider", c.Section().Name,
		"holds", learned.Holds, "pause", learned.Pause(), "error", reason)
	if learned.Round == known || !limited {
		return
	}
	if err := t.Records.ForgetLimits(ctx, c.Section().Name); err != nil && !errors.Is(err, context.Canceled) {
		t.Log.Warn("Limits stay as they are", "provider", c.Section().Name, "error", err)
	}
}

// Accepted learns from a machine that the cloud has accepted for a node, where it was
// asked for as a trial; it is called once for each.
func (t *Teacher) Accepted(ctx context.Context, c Cloud, asked lesson.Asked, n *zkmodel.Node) {
	held := schedule.Plus(schedule.Plus(nil, t.inUse(c, n.ID).Held), schedule.NodeResources(n, nil))
	t.learn(ctx, c, func(l lesson.Lesson) (lesson.Lesson, bool) { return l.Accept(asked, held) })
}

// ZoneWorks learns that a machine in an availability zone has become ready.
func (t *Teacher) ZoneWorks(ctx context.Context, c Cloud, zone string) {
	t.learn(ctx, c, func(l lesson.Lesson) (lesson.Lesson, bool) { return l.AcceptZone(zone) })
}

// learn changes what a cloud taught: here at once, then in the tree, which has the
// last word. It returns what is known then.
func (t *Teacher) learn(ctx context.Context, c Cloud, change func(lesson.Lesson) (lesson.Lesson, bool)) lesson.Lesson {
	local, news := change(c.Lessons().Lesson)
	if !news {
		return local
	}
	c.Heed(local)
	err := t.Records.ChangeRefusals(ctx, c.Section().Name, func(old []byte) ([]byte, zkmodel.Turn, error) {
		var shared lesson.Lesson
		if len(old) > 0 && json.Unmarshal(old, &shared) != nil {
			shared = lesson.Lesson{} // nothing that we can read: begun anew
		}
		if next, news := change(shared); news {
			local = next
			data, err := json.Marshal(next)
			return data, turn(shared, next), err
		}
		return old, zkmodel.Turn{}, nil
	})
	if err != nil && ctx.Err() == nil {
		t.Log.Warn("What a refusal taught is not shared", "provider", c.Section().Name, "error", err)
	}
	c.Heed(local)
	return local
}

// turn is what a lesson says that the one before did not.
func turn(before, after lesson.Lesson) zkmodel.Turn {
	switch refused, refuses := before.Failures > 0, after.Failures > 0; {
	case refuses && !refused:
		return zkmodel.Turn{Kind: event.ProviderRefusing, Reason: after.Reason}
	case refused && !refuses:
		return zkmodel.Turn{Kind: event.ProviderAccepting}
	}
	return zkmodel.Turn{}
}

// inUse is what is in a cloud now, but for one node.
func (t *Teacher) inUse(c Cloud, except string) lesson.Use {
	view := c.Lessons()
	all := schedule.Uses(t.Nodes(), map[string]bool{c.Section().Name: view.Lesson.Late}, t.Now(), except)
	return *all[c.Section().Name]
}
