package backup

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"poolkeeper/zkmodel"
)

// image is what is to be written of an image.
type image struct {
	name           string
	pause, request bool
	builds         []*tree // in the order in which they were made
}

// tree is a build with those of its uploads that are to be written.
type tree struct {
	id      string
	made    float64
	uploads []zkmodel.UploadKey // by provider, then by number
}

// sorted takes records, which are some of all, apart into images, by name.
func sorted(d, all Data) []*image {
	images := map[string]*image{}
	for _, path := range slices.Sorted(maps.Keys(d)) {
		p, err := placeOf(path)
		if err != nil { // cannot be: Parse leaves none in
			continue
		}
		i := images[p.key.Image]
		if i == nil {
			i = &image{name: p.key.Image}
			images[i.name] = i
		}
		switch p.kind {
		case pause:
			i.pause = true
		case request:
			i.request = true
		case build, upload:
			b := i.build(p.key.Build)
			b.made = stateTime(all[zkmodel.BuildPath(i.name, b.id)])
			if p.kind == upload {
				b.uploads = append(b.uploads, p.key)
			}
		}
	}
	list := slices.SortedFunc(maps.Values(images), func(a, b *image) int { return strings.Compare(a.name, b.name) })
	for _, i := range list {
		i.order()
	}
	return list
}

// build finds a build, which is made if need be.
func (i *image) build(id string) *tree {
	for _, b := range i.builds {
		if b.id == id {
			return b
		}
	}
	b := &tree{id: id}
	i.builds = append(i.builds, b)
	return b
}

// stateTime is when the state of a record began; 0 where that cannot be told.
func stateTime(text string) float64 {
	var record struct {
		StateTime float64 `json:"state_time"`
	}
	_ = json.Unmarshal([]byte(text), &record) // what cannot be decoded comes first
	return record.StateTime
}

// order puts builds into the order in which they were made, which is what says which is the
// newest: ids of ours count up; of Nodepool's, which are random, the time of the state is the
// best that the file tells.
func (i *image) order() {
	slices.SortStableFunc(i.builds, func(a, b *tree) int { return cmp.Compare(a.made, b.made) })
	var places []int
	var ours []*tree
	for n, b := range i.builds {
		if _, counted := number(b.id); counted {
			places, ours = append(places, n), append(ours, b)
		}
	}
	slices.SortFunc(ours, func(a, b *tree) int { return strings.Compare(a.id, b.id) })
	for n, b := range ours {
		i.builds[places[n]] = b
	}
}

// digits is how long a number is that ZooKeeper gives.
const digits = 10

// number is the number of a sequential name; false for another name.
func number(id string) (int, bool) {
	n, err := strconv.ParseUint(id, 10, 31)
	return int(n), err == nil && len(id) == digits
}
