package site

import (
	"fmt"
	"path"
	"strings"

	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// place is a cloud where an image may be ready.
type place struct{ image, cloud string }

// built is told of a change of what may be the record of a build or an upload: it notes since when an image is ready somewhere.
func (j *judge) built(c zookeeper.Change) {
	image, ready := "", false
	if c.Kind == zookeeper.Check || c.Kind == zookeeper.SetACL {
		return
	}
	if key, err := zkmodel.ParseUploadPath(c.Path); err == nil {
		u := zkmodel.DecodeUpload(key, c.Data, recipe.Stat{})
		image, ready = key.Image, u.Broken == nil && u.State == zkmodel.UploadReady && !u.ExternalID.IsNull()
	} else if name, id := buildAt(c.Path); id != "" {
		b := zkmodel.DecodeBuild(name, id, c.Data, recipe.Stat{})
		image, ready = name, b.Broken == nil && b.State == zkmodel.BuildReady
	} else {
		return
	}
	if ready && c.Kind != zookeeper.Delete {
		j.tree.ready[c.Path] = true
	} else {
		delete(j.tree.ready, c.Path)
	}
	for _, cloud := range names {
		at := place{image, cloud}
		if _, known := j.tree.since[at]; !j.tree.boots(at) {
			delete(j.tree.since, at)
		} else if !known {
			j.tree.since[at] = j.seen
		}
	}
}

// boots reports whether there is a ready upload of a ready build.
func (t *tree) boots(at place) bool {
	for p := range t.ready {
		if key, err := zkmodel.ParseUploadPath(p); err == nil && (place{key.Image, key.Provider}) == at && t.ready[zkmodel.BuildPath(key.Image, key.Build)] {
			return true
		}
	}
	return false
}

// buildAt is the build that a path is the record of; others are "".
func buildAt(p string) (image, id string) {
	image = path.Base(path.Dir(path.Dir(p)))
	if id = path.Base(p); p != zkmodel.BuildPath(image, id) || zkmodel.LockPath(path.Dir(p)) == p {
		return "", ""
	}
	return image, id
}

// imageless: no pool declines a request for want of an image that was ready before the request was made, and is.
func (j *judge) imageless(client string, old, r *zkmodel.Request) {
	labels, cloud := lacking(r)
	if len(r.DeclinedBy) <= len(old.DeclinedBy) || cloud == "" {
		return
	}
	j.world.count("declines for want of an image")
	for _, label := range labels {
		if since, ready := j.tree.since[place{imageOf[label], cloud}]; imageOf[label] != "" && (!ready || since >= j.asked[r.ID]) {
			return
		}
	}
	j.Wrong(client, "declines request %s of %v, made in transaction %d, although its images are ready in %s since before: %s", r.ID, r.NodeTypes, j.asked[r.ID], cloud, r.Reason)
}

// lacking are the labels of a request of which one lacks an image, by the reason of its last decline, and the cloud; "" where it
// was declined for something else.
func lacking(r *zkmodel.Request) (labels []string, cloud string) {
	var label string
	if n, _ := fmt.Sscanf(r.Reason, "no image for label %s is ready in provider %s", &label, &cloud); n == 2 {
		return []string{label}, cloud
	}
	if !strings.Contains(r.Reason, "choose image") || !strings.Contains(r.Reason, "no image is ready") { // as it was launched
		return nil, ""
	}
	for _, name := range names {
		if len(r.DeclinedBy) > 0 && strings.Contains(r.DeclinedBy[len(r.DeclinedBy)-1], "."+name+"-") {
			return r.NodeTypes, name
		}
	}
	return nil, ""
}
