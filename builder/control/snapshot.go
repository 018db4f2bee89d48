package control

import (
	"maps"
	"slices"

	"poolkeeper/builder/disk"
	"poolkeeper/builder/plan"
	"poolkeeper/zkmodel"
)

// Snapshot gathers all that a decision about an image depends on.
func (c *Control) Snapshot(image string) plan.Input {
	free, err := c.images.Free()
	if err != nil {
		free = -1
	}
	tree := c.Mirror.Image(image)
	now := c.clock.now()
	others := plan.Others{Alive: c.alive()}
	others.Seen, others.Since = c.peers.Update(others.Alive, now)
	validations, untriable := c.onTrial(tree)
	return plan.Input{
		Validations: validations, Untriable: untriable, NoCanary: NoCanary(c.Config(), image, c.Mirror.Components),
		Paused:   zkmodel.Paused(c.Mirror.ProviderPauses(), now),
		Config:   c.Config(),
		Image:    tree,
		Local:    LocalBuilds(c.images, image),
		Logs:     c.logs(tree),
		Host:     plan.Host{Name: c.FQDN, ID: c.id, Arch: c.Arch, Free: free, Unfit: c.fitness.reason(), ClockOff: c.clock.off()},
		Others:   others,
		InFlight: c.inFlight.of(image),
		Now:      now,
		Policy:   c.Policy,
	}
}

// LocalBuilds is what plan decides by of the files of an image.
func LocalBuilds(images *disk.Images, image string) []plan.LocalBuild {
	var list []plan.LocalBuild
	for _, b := range images.Builds(image) {
		list = append(list, plan.LocalBuild{ID: b.ID, Formats: b.Formats, Ours: b.Ours})
	}
	return list
}

// logs says where the logs of the builds can be read that were made here.
func (c *Control) logs(image *zkmodel.Image) map[string]plan.Log {
	logs := map[string]plan.Log{}
	for _, b := range image.Builds {
		if b.BuilderID == c.id {
			url, here := c.LogURL(image.Name, b.ID)
			logs[b.ID] = plan.Log{URL: url, Here: here}
		}
	}
	return logs
}

// alive lists the builders that are registered.
func (c *Control) alive() map[string]bool {
	hosts := map[string]bool{}
	for _, c := range c.Mirror.Components(zkmodel.KindBuilder) {
		hosts[c.Hostname] = true
	}
	return hosts
}

// all names all images of which there may be something to do.
func (c *Control) all() []string {
	names := map[string]bool{}
	for _, image := range c.Config().DiskImages {
		names[image.Name] = true
	}
	for _, name := range c.Mirror.ImageNames() {
		names[name] = true
	}
	for _, name := range c.images.Names() {
		names[name] = true
	}
	trials, _ := c.Mirror.Validations("")
	for _, v := range trials {
		if v.Broken == nil {
			names[v.Image] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
