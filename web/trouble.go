package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"poolkeeper/zkmodel"
)

// When something takes so long that somebody should look at it.
const (
	slowDeletion = 10 * time.Minute
	slowRequest  = 10 * time.Minute
	slowReclaim  = time.Minute // of a build that its builder left behind
)

// trouble is one thing that somebody should look at.
type trouble struct {
	What  string
	Why   string
	Since when
	Log   string // link
	Tail  string // last lines of the log
}

// troubles finds what needs attention, what concerns most comes first.
func (s *snapshot) troubles() []trouble {
	list := s.daemonTroubles()
	for _, line := range s.guarded {
		list = append(list, trouble{What: "Not all of the configuration is in effect (poolkeeper config-accept)", Why: line})
	}
	for _, image := range s.images {
		list = append(list, s.imageTroubles(image)...)
		list = append(list, s.uploadTroubles(image)...)
		list = append(list, s.trialTroubles(image)...)
	}
	for _, n := range s.nodes {
		list = append(list, s.nodeTroubles(n)...)
	}
	for _, r := range s.requests {
		list = append(list, s.requestTroubles(r)...)
	}
	return list
}

// daemonTroubles tells of work that has nobody to do it.
func (s *snapshot) daemonTroubles() []trouble {
	if s.tree.Components == nil {
		return nil
	}
	running := func(kind string) bool {
		return slices.ContainsFunc(s.daemons, func(c *zkmodel.Component) bool { return c.Kind == kind })
	}
	list := s.providerTroubles()
	for _, c := range s.daemons {
		if c.Reason != "" {
			list = append(list, trouble{What: words(" ", "The", c.Kind, "on", c.Hostname, "builds nothing"), Why: c.Reason})
		}
	}
	for _, c := range append(slices.Clone(s.daemons), s.pools...) {
		if c.Broken != nil {
			list = append(list, trouble{What: "What " + c.Kind + " " + c.Name + " says of itself cannot be read", Why: c.Broken.Error()})
		}
	}
	if len(s.images) > 0 && !running(zkmodel.KindBuilder) {
		list = append(list, trouble{What: "No builder is running", Why: "images are neither built nor uploaded"})
	}
	if len(s.nodes)+len(s.requests) > 0 && !running(zkmodel.KindLauncher) {
		list = append(list, trouble{What: "No launcher is running", Why: "nodes are neither launched nor deleted"})
	}
	return list
}

// providerTroubles tells of providers that launchers or builders cannot use, one line
// for all pools and hosts of which the same is said.
func (s *snapshot) providerTroubles() []trouble {
	type said struct{ provider, kind, why string }
	hosts := map[said][]string{}
	note := func(k said, host string) {
		if !slices.Contains(hosts[k], host) {
			hosts[k] = append(hosts[k], host)
		}
	}
	for _, c := range s.pools {
		if c.Trouble != "" && c.Broken == nil {
			note(said{c.ProviderName, zkmodel.KindLauncher, c.Trouble}, c.Hostname)
		}
	}
	for _, c := range s.daemons {
		for provider, why := range c.Troubles {
			note(said{provider, c.Kind, why}, c.Hostname)
		}
	}
	list := make([]trouble, 0, len(hosts))
	for k, on := range hosts {
		slices.Sort(on)
		list = append(list, trouble{
			What: fmt.Sprintf("Provider %s cannot be used by the %s on %s", k.provider, k.kind, strings.Join(on, ", ")), Why: k.why,
		})
	}
	slices.SortFunc(list, func(a, b trouble) int { return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.Why, b.Why)) })
	return list
}

// imageTroubles judges an image by its newest build that is of any use.
func (s *snapshot) imageTroubles(image *zkmodel.Image) []trouble {
	var list []trouble
	if image.Unread != nil {
		list = append(list, trouble{What: "Part of image " + image.Name + " cannot be read", Why: image.Unread.Error()})
	}
	var last *zkmodel.BuildTree // to have ended
	ready, building := false, false
	for _, b := range image.Builds {
		since := changed(b.StateTime, b.Stat.Mtime)
		switch {
		case b.Broken != nil:
			list = append(list, trouble{
				What: "Build " + b.Name() + " cannot be read", Why: b.Broken.Error(), Since: moment(since, s.now),
			})
		case b.State == zkmodel.BuildBuilding:
			building = true
			if !image.BuildsLocked && s.now.Sub(since) > slowReclaim {
				list = append(list, trouble{
					What: "Build " + b.Name() + " was left behind", Why: "nobody holds its lock, and nobody has cleaned it",
					Since: moment(since, s.now), Log: s.logLink(b.Build),
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
		list = append(list, trouble{
			What: words(", ", "Build "+last.Name()+" failed", s.failures(last.Failures, last.RetryAt)), Why: last.Reason,
			Since: moment(changed(last.StateTime, last.Stat.Mtime), s.now),
			Log:   s.logLink(last.Build), Tail: last.Tail,
		})
	case !ready && !building && !image.Paused && image.Unread == nil:
		list = append(list, trouble{What: "Image " + image.Name + " has no ready build", Why: "and none is under way"})
	}
	return list
}

// uploadTroubles judges an image in each provider by its newest upload.
func (s *snapshot) uploadTroubles(image *zkmodel.Image) []trouble {
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
	var list []trouble
	for _, provider := range providers {
		u := newest[provider]
		list = append(list, s.canaryTroubles(image, provider)...)
		if told := s.verdictTroubles(image, u); told != nil {
			list = append(list, told...)
			continue
		}
		if u.Suspect != "" && u.State == zkmodel.UploadReady {
			list = append(list, trouble{
				What: fmt.Sprintf("Image %s-%s in %s does not boot, an older one is used", u.Image, u.Build, provider),
				Why:  u.Suspect, Since: moment(u.Stat.Mtime, s.now),
			})
			continue
		}
		if u.State != zkmodel.UploadFailed && u.Broken == nil {
			continue
		}
		end := "failed"
		if u.Broken != nil {
			end = "cannot be read"
		}
		list = append(list, trouble{
			What: words(", ", fmt.Sprintf("Upload of %s-%s to %s %s", u.Image, u.Build, provider, end), s.failures(u.Failures, u.RetryAt)),
			Why:  why(u.Reason, u.Broken), Since: moment(changed(u.StateTime, u.Stat.Mtime), s.now),
		})
	}
	return list
}

// nodeTroubles judges a node.
func (s *snapshot) nodeTroubles(n *zkmodel.Node) []trouble {
	since := changed(n.StateTime, n.Stat.Mtime)
	name := words(" in ", "Node "+n.ID, n.Provider)
	t := trouble{Why: why(n.Reason, n.Broken), Since: moment(since, s.now)}
	slow := s.now.Sub(since) > slowDeletion
	switch {
	case n.Broken != nil:
		t.What = name + " cannot be read"
	case n.State == zkmodel.NodeFailed || n.State == zkmodel.NodeAborted:
		t.What = name + " failed"
	case slow && (n.State == zkmodel.NodeDeleting || n.State == zkmodel.NodeUsed && !n.Locked):
		t.What = name + " is not deleted"
	default:
		return nil
	}
	return []trouble{t}
}

// requestTroubles judges a node request.
func (s *snapshot) requestTroubles(r *zkmodel.Request) []trouble {
	since := changed(r.StateTime, r.Stat.Mtime)
	name := words(" of ", "Request "+r.ID, r.Requestor)
	t := trouble{Why: why(r.Reason, r.Broken), Since: moment(since, s.now)}
	waiting := r.State == zkmodel.RequestRequested || r.State == zkmodel.RequestPending
	switch {
	case r.Broken != nil:
		t.What = name + " cannot be read"
	case r.State == zkmodel.RequestFailed:
		t.What = name + " failed"
	case waiting && s.now.Sub(since) > slowRequest:
		t.What = name + " waits"
	default:
		return nil
	}
	return []trouble{t}
}
