// Package attention finds what of a site a person should look at, and folds what is alike into one
// line: pure functions of records and a clock.
package attention

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// When something takes so long that a person should look at it.
const (
	slowRequest = 10 * time.Minute
	starves     = time.Hour   // of a request
	slowReclaim = time.Minute // of a build that its builder left behind
)

// Site is what is looked at, and when.
type Site struct {
	Now      time.Time
	Images   []*zkmodel.Image
	Nodes    []*zkmodel.Node
	Requests []*zkmodel.Request
	// Daemons are builders and launchers, Pools those of launchers; where they are not
	// known, NoComponents says so.
	Daemons, Pools []*zkmodel.Component
	NoComponents   bool
	Trials         []*zkmodel.Validation
	// Guarded are the lines of a daemon's configuration that are not in effect, LeftOut what it
	// leaves out for a mistake.
	Guarded, LeftOut []string
}

// Item is one thing that needs attention.
type Item struct {
	Kind  Kind
	What  string
	Why   string
	Since time.Time // zero when it is not known
	// Image, Build and Provider are what it is of; Name is that of a node, request or host.
	Image, Build, Provider, Name string
	// Urgent: requests starve, nobody launches, or no provider has a ready image.
	Urgent bool
	Log    *zkmodel.Build // whose log tells more; nil when none does
	Tail   string         // last lines of that log
}

// Items finds what needs attention, what concerns most comes first.
func (s *Site) Items() []Item {
	list := s.daemonTroubles()
	for _, line := range s.Guarded {
		list = append(list, Item{Kind: Guarded, What: "Not all of the configuration is in effect", Why: line})
	}
	for _, line := range s.LeftOut {
		if strings.Contains(line, configs.Unopened) {
			list = append(list, Item{Kind: SecretUnread, What: "A secret cannot be read, and what needs it is left out", Why: line})
			continue
		}
		list = append(list, Item{Kind: LeftOut, What: "Something is wrong with the configuration, and is left out", Why: line})
	}
	for _, image := range s.Images {
		list = append(list, s.imageTroubles(image)...)
		list = append(list, s.uploadTroubles(image)...)
		list = append(list, staleRulings(image)...)
		list = append(list, s.trialTroubles(image)...)
		list = append(list, s.stuckUploads(image)...)
	}
	for _, n := range s.Nodes {
		list = append(list, s.nodeTroubles(n)...)
	}
	for _, r := range s.Requests {
		list = append(list, s.requestTroubles(r)...)
	}
	return list
}

// daemonTroubles tells of work that has nobody to do it.
func (s *Site) daemonTroubles() []Item {
	if s.NoComponents {
		return nil
	}
	running := func(kind string) bool {
		return slices.ContainsFunc(s.Daemons, func(c *zkmodel.Component) bool { return c.Kind == kind })
	}
	list := s.providerTroubles()
	for _, c := range s.Daemons {
		if r := c.Refused; r != nil {
			list = append(list, Item{
				Kind: Refused, What: listing.Words(" ", "The", c.Kind, "on", c.Hostname, "does not use its configuration file"),
				Why: r.String(), Since: r.Time.Time(), Name: c.Hostname,
			})
		}
		if c.Reason != "" {
			list = append(list, Item{
				Kind: Withdrawn, What: listing.Words(" ", "The", c.Kind, "on", c.Hostname, "builds nothing"), Why: c.Reason, Name: c.Hostname,
			})
		}
	}
	for _, c := range append(slices.Clone(s.Daemons), s.Pools...) {
		if c.Broken != nil {
			list = append(list, Item{
				Kind: DaemonUnread, What: "What " + c.Kind + " " + c.Name + " says of itself cannot be read", Why: c.Broken.Error(), Name: c.Name,
			})
		}
	}
	if len(s.Images) > 0 && !running(zkmodel.KindBuilder) {
		list = append(list, Item{Kind: NoBuilder, What: "No builder is running", Why: "images are neither built nor uploaded"})
	}
	if len(s.Nodes)+len(s.Requests) > 0 && !running(zkmodel.KindLauncher) {
		list = append(list, Item{Kind: NoLauncher, Urgent: true, What: "No launcher is running", Why: "nodes are neither launched nor deleted"})
	}
	return list
}

// imageTroubles judges an image by its newest build that is of any use.
func (s *Site) imageTroubles(image *zkmodel.Image) []Item {
	var list []Item
	if image.Unread != nil {
		list = append(list, Item{Kind: ImageUnread, Image: image.Name, What: "Part of image " + image.Name + " cannot be read", Why: image.Unread.Error()})
	}
	var last *zkmodel.BuildTree // to have ended
	ready, building := false, false
	for _, b := range image.Builds {
		since := listing.Changed(b.StateTime, b.Stat.Mtime)
		switch {
		case b.Broken != nil:
			list = append(list, Item{
				What: "Build " + b.Name() + " cannot be read", Since: since,
				Why:  b.Broken.Error() + "; to remove the record: poolkeeper dib-image-delete --broken " + b.Name(),
				Kind: BuildUnread, Image: b.Image, Build: b.ID,
			})
		case b.State == zkmodel.BuildBuilding:
			building = true
			if !image.BuildsLocked && s.Now.Sub(since) > slowReclaim {
				list = append(list, Item{
					What: "Build " + b.Name() + " was left behind", Why: "nobody holds its lock, and nobody has cleaned it",
					Since: since, Log: b.Build,
					Kind: BuildLeft, Image: b.Image, Build: b.ID,
				})
			}
		case b.State == zkmodel.BuildReady:
			ready, last = true, b
		case b.State == zkmodel.BuildFailed:
			last = b
		}
	}
	switch {
	case last != nil && last.State == zkmodel.BuildFailed:
		list = append(list, Item{
			What: listing.Words(", ", "Build "+last.Name()+" failed", listing.Failures(last.Failures, last.RetryAt, s.Now)), Why: last.Reason,
			Since: listing.Changed(last.StateTime, last.Stat.Mtime),
			Log:   last.Build, Tail: last.Tail,
			Kind: BuildFailed, Image: last.Image, Build: last.ID,
		})
	case !ready && !building && !image.Paused && image.Unread == nil:
		list = append(list, Item{
			Kind: NoReadyBuild, Image: image.Name, What: "Image " + image.Name + " has no ready build", Why: "and none is under way",
		})
	}
	return list
}

// uploadTroubles judges an image in each provider by its newest upload.
func (s *Site) uploadTroubles(image *zkmodel.Image) []Item {
	newest := map[string]*zkmodel.Upload{}
	var providers []string
	for _, b := range image.Builds {
		for _, u := range b.Uploads {
			if u.State == zkmodel.UploadDeleting && u.Broken == nil {
				continue
			}
			if newest[u.Provider] == nil {
				providers = append(providers, u.Provider)
			}
			newest[u.Provider] = u
		}
	}
	slices.Sort(providers)
	var list []Item
	for _, provider := range providers {
		u := newest[provider]
		list = append(list, s.canaryTroubles(image, provider)...)
		if told := s.verdictTroubles(image, u); told != nil {
			list = append(list, told...)
			continue
		}
		if u.Suspect != "" && u.State == zkmodel.UploadReady {
			list = append(list, Item{
				What: fmt.Sprintf("Image %s-%s in %s does not boot, an older one is used", u.Image, u.Build, provider),
				Why:  u.Suspect, Since: u.Stat.Mtime,
				Kind: Suspect, Image: u.Image, Build: u.Build, Provider: provider,
			})
			continue
		}
		if u.State != zkmodel.UploadFailed && u.Broken == nil {
			continue
		}
		kind, end := UploadFailed, "failed"
		if u.Broken != nil {
			kind, end = UploadUnread, "cannot be read"
		}
		list = append(list, Item{
			What: listing.Words(", ", fmt.Sprintf("Upload of %s-%s to %s %s", u.Image, u.Build, provider, end), listing.Failures(u.Failures, u.RetryAt, s.Now)),
			Why:  listing.Why(u.Reason, u.Broken), Since: listing.Changed(u.StateTime, u.Stat.Mtime),
			Kind: kind, Image: u.Image, Build: u.Build, Provider: provider,
		})
	}
	return list
}

// nodeTroubles judges a node.
func (s *Site) nodeTroubles(n *zkmodel.Node) []Item {
	since := listing.Changed(n.StateTime, n.Stat.Mtime)
	kind, what, why := NodeStuck, " is not deleted", listing.Why(cmp.Or(n.DeleteError, n.Reason), n.Broken)
	switch {
	case n.Broken != nil:
		kind, what = NodeUnread, " cannot be read, and counts in every pool"
		why += "; to remove the record: poolkeeper node-delete --broken " + n.ID
	case n.State == zkmodel.NodeFailed || n.State == zkmodel.NodeAborted:
		kind, what = NodeFailed, " failed"
	case n.Stuck(s.Now), n.State == zkmodel.NodeUsed && !n.Locked && s.Now.Sub(since) > slowReclaim:
	default:
		return nil // of tens of thousands most; no text is made for these
	}
	return []Item{{
		Kind: kind, What: listing.Words(" in ", "Node "+n.ID, n.Provider) + what, Why: why, Since: since, Provider: n.Provider, Name: n.ID,
	}}
}

// requestTroubles judges a node request.
func (s *Site) requestTroubles(r *zkmodel.Request) []Item {
	since := listing.Changed(r.StateTime, r.Stat.Mtime)
	name := listing.Words(" of ", "Request "+r.ID, r.Requestor)
	t := Item{Why: listing.Why(r.Reason, r.Broken), Since: since, Name: r.ID}
	waiting := r.State == zkmodel.RequestRequested || r.State == zkmodel.RequestPending
	switch {
	case r.Broken != nil:
		t.Kind, t.What = RequestUnread, name+" cannot be read"
	case r.State == zkmodel.RequestFailed:
		t.Kind, t.What = RequestFailed, name+" failed"
	case waiting && s.Now.Sub(since) > slowRequest:
		t.Kind, t.What, t.Urgent = RequestWaits, name+" waits", s.Now.Sub(since) > starves
	default:
		return nil
	}
	return []Item{t}
}
