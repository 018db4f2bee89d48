package request

import (
	"cmp"
	"errors"
	"fmt"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// needsImage has the labels of a pool boot from images of their names.
func needsImage(p *pool.Pool, labels ...string) {
	for _, label := range labels {
		one := p.Labels[label]
		one.DiskImage = label
		p.Labels[label] = one
	}
}

// images configures those that needsImage names.
func images(c *configs.Config) {
	c.DiskImages = []configs.DiskImage{{Name: "small"}, {Name: "large"}}
}

// ready shows an image with an upload in a provider.
func (v *tree) ready(name, provider string) {
	build := &zkmodel.BuildTree{
		Build: &zkmodel.Build{Image: name, ID: "1", State: zkmodel.BuildReady},
		Uploads: []*zkmodel.Upload{{
			UploadKey: zkmodel.UploadKey{Image: name, Build: "1", Provider: provider, ID: "1"},
			State:     zkmodel.UploadReady, ExternalID: zkmodel.TextValue("external"),
		}},
	}
	if v.images == nil {
		v.images = map[string]*zkmodel.Image{}
	}
	v.images[name] = &zkmodel.Image{Name: name, Builds: []*zkmodel.BuildTree{build}}
}

// Mistake: a request that fails for want of an image that its requestor has seen ready: the launcher saw the
// request sooner than the image.
func TestDeclineForWantOfAnImage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seen, late  [2]string // an image that is ready in a provider, and one that shows late
		cloudy      bool      // label small boots from an image of the cloud
		unknown     bool      // label large has an image that is not configured
		err         error     // why the view does not catch up
		failed      bool
		leftAlone   bool
		notNoticed  bool // the decision does not say that it is for want of an image
		lacksInBoth bool // the other pool lacks images, too
		unread      bool // what else there is of image small
	}{
		"none is ready":                    {failed: true},
		"one of two is":                    {late: [2]string{"small", "here"}, failed: true},
		"both are, one shows late":         {seen: [2]string{"large", "here"}, late: [2]string{"small", "here"}, leftAlone: true},
		"one of the cloud, and one late":   {cloudy: true, late: [2]string{"large", "here"}, leftAlone: true},
		"in another provider":              {seen: [2]string{"large", "here"}, late: [2]string{"small", "there"}, failed: true},
		"both are, and one is unknown":     {unknown: true, seen: [2]string{"large", "here"}, late: [2]string{"small", "here"}, failed: true},
		"the view does not catch up":       {err: errors.New("no session"), leftAlone: true},
		"it cannot be read":                {unread: true, seen: [2]string{"large", "here"}, leftAlone: true},
		"some of it cannot be read":        {unread: true, seen: [2]string{"large", "here"}, late: [2]string{"small", "here"}, leftAlone: true},
		"it is declined for another cause": {notNoticed: true, seen: [2]string{"large", "here"}, late: [2]string{"small", "here"}, failed: true},
		"in the second of two pools":       {lacksInBoth: true, seen: [2]string{"large", "there"}, late: [2]string{"small", "there"}, leftAlone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t, images)
			needsImage(r.here, "small", "large")
			needsImage(r.Pools[1], "small", "large")
			if c.cloudy {
				r.here.Labels["small"] = configs.PoolLabel{Name: "small", CloudImage: "theirs"}
				r.here.Provider.CloudImages = []configs.CloudImage{{Name: "theirs"}}
			}
			if c.unknown {
				r.Config.DiskImages = r.Config.DiskImages[:1]
			}
			r.tree.ready(c.seen[0], c.seen[1])
			if c.unread && c.late[0] == "" {
				r.tree.images["small"] = &zkmodel.Image{Name: "small", Unread: recipe.ErrUnread}
			}
			req := r.request([]string{"small", "large"})
			r.tree.waitFor = func(zxid int64) error {
				if zxid == req.Stat.Czxid && c.err == nil && c.late[0] != "" {
					r.tree.ready(c.late[0], c.late[1])
					if c.unread {
						r.tree.images[c.late[0]].Unread = recipe.ErrUnread
					}
				}
				return c.err
			}
			d := schedule.Decline{About: schedule.About{Request: req, Reason: "no image"}, Pools: []string{r.here.ID, r.Pools[1].ID}}
			if !c.notNoticed {
				d.Imageless = []string{r.here.ID}
			}
			if c.lacksInBoth {
				d.Imageless = d.Pools
			}
			r.carryOut(d)
			got, want := r.read(req.ID), zkmodel.RequestRequested
			if c.failed {
				want = zkmodel.RequestFailed
			}
			if got.State != want || len(got.DeclinedBy) > 0 != c.failed {
				t.Errorf("request is %s, declined by %q; want %s", got.State, got.DeclinedBy, want)
			}
			if alone := r.leftAlone(req); alone != c.leftAlone || r.Own.Requests()[req.ID] != c.failed {
				t.Errorf("left alone %t, want %t; ours %t", alone, c.leftAlone, r.Own.Requests()[req.ID])
			}
		})
	}
}

// Mistake: a request that fails as the image that was chosen for it has gone, and the one that has come in its
// place was not seen yet.
func TestLaunchWithoutAnImage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found   bool   // the upload was chosen, and the cloud does not have it
		small   error  // what became of the machine instead
		machine string // that was made
		unread  bool   // what else there is of image small
		late    bool
		err     error // why the view does not catch up
		large   error // of the other node
		state   zkmodel.RequestState
		lost    bool
	}{
		"there is none":              {state: zkmodel.RequestFailed},
		"another shows late":         {late: true, state: zkmodel.RequestRequested},
		"the cloud lacks it":         {found: true, state: zkmodel.RequestFailed},
		"and has another":            {found: true, late: true, state: zkmodel.RequestRequested},
		"part of it cannot be read":  {late: true, unread: true, state: zkmodel.RequestRequested},
		"and its machine failed":     {found: true, late: true, small: providers.ErrNodeFailed, state: zkmodel.RequestFailed},
		"and its machine has gone":   {found: true, late: true, machine: "1", state: zkmodel.RequestFailed},
		"and the other node fails":   {late: true, large: providers.ErrNodeFailed, state: zkmodel.RequestFailed},
		"the view does not catch up": {err: errors.New("no session"), state: zkmodel.RequestPending, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t, images)
			needsImage(r.here, "small")
			r.here.Labels["large"] = configs.PoolLabel{Name: "large", CloudImage: "theirs"}
			r.here.Provider.CloudImages = []configs.CloudImage{{Name: "theirs"}}
			r.launches.none = map[string]error{"small": fmt.Errorf("choose image small: %w", pool.ErrNoImage)}
			r.launches.fails = map[string]error{"large": c.large}
			if c.found {
				r.launches.none = map[string]error{"small": cmp.Or(c.small, fmt.Errorf("%w: image", providers.ErrNotFound))}
				r.launches.machine = c.machine
				r.tree.ready("small", "here")
				r.launches.image = r.tree.images["small"].Builds[0].Uploads[0].Path()
			}
			req := r.request([]string{"small", "large"})
			r.tree.waitFor = func(int64) error {
				if c.late {
					r.tree.ready("small", "here")
					r.tree.images["small"].Builds[0].Uploads[0].ID = "2"
				}
				if c.unread {
					r.tree.images["small"].Unread = recipe.ErrUnread
				}
				return c.err
			}
			r.carryOut(r.accept(req))
			if got := r.read(req.ID); got.State != c.state || len(got.DeclinedBy) > 0 != (c.state == zkmodel.RequestFailed) {
				t.Errorf("request is %s, declined by %q (%s); want %s", got.State, got.DeclinedBy, got.Reason, c.state)
			}
			if r.Lost()[req.ID] != c.lost {
				t.Errorf("lost: %t, want %t", r.Lost()[req.ID], c.lost)
			}
		})
	}
}
