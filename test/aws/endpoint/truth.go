package endpoint

import (
	"bytes"
	"maps"
	"slices"
)

// truth are the things of a kind that exist, copied, whatever a list would say.
func (e *Endpoint) truth(kind string, keep func(*Thing) bool) []Thing {
	var list []Thing
	e.locked(func() {
		for _, t := range e.world.of(kind) {
			if keep == nil || keep(t) {
				list = append(list, Thing{ID: t.ID, Kind: t.Kind, Tags: maps.Clone(t.Tags), Doc: maps.Clone(t.Doc)})
			}
		}
	})
	return list
}

// own are those of this account: nobody else's images, and nothing that was there from the beginning.
func own(t *Thing) bool { return !t.made.IsZero() }

// Instances are the machines that are not terminated.
func (e *Endpoint) Instances() []Thing {
	return e.truth("instance", func(t *Thing) bool { return t.State() != "terminated" })
}

// Images are those that were made since the endpoint started.
func (e *Endpoint) Images() []Thing { return e.truth("image", own) }

// SeededImages are those that were there before: one of our own account, and two newer ones of Amazon's.
func (e *Endpoint) SeededImages() []Thing {
	return e.truth("image", func(t *Thing) bool { return !own(t) })
}

// Snapshots are those that were made since the endpoint started.
func (e *Endpoint) Snapshots() []Thing { return e.truth("snapshot", own) }

// Volumes are those that exist.
func (e *Endpoint) Volumes() []Thing { return e.truth("volume", nil) }

// Hosts are the dedicated ones.
func (e *Endpoint) Hosts() []Thing { return e.truth("host", nil) }

// Templates are the launch templates.
func (e *Endpoint) Templates() []Thing { return e.truth("launch-template", nil) }

// SpotRequests are all that there were.
func (e *Endpoint) SpotRequests() []Thing { return e.truth("spot-instances-request", nil) }

// Objects are the names in a bucket.
func (e *Endpoint) Objects(bucket string) []string {
	var names []string
	e.locked(func() { names = slices.Sorted(maps.Keys(e.world.buckets[bucket])) })
	return names
}

// ObjectTags are the tags of an object; nil where it does not exist.
func (e *Endpoint) ObjectTags(bucket, key string) map[string]string {
	var tags map[string]string
	e.locked(func() {
		if o := e.world.buckets[bucket][key]; o != nil {
			tags = maps.Clone(o.tags)
		}
	})
	return tags
}

// Uploads are the keys of uploads in parts that are under way.
func (e *Endpoint) Uploads() []string {
	var keys []string
	e.locked(func() {
		for _, u := range e.world.uploads {
			keys = append(keys, u.key)
		}
	})
	slices.Sort(keys)
	return keys
}

// SnapshotBytes are the bytes of a snapshot up to the end of its last block that is not a hole. In one that is
// encrypted a hole holds noise, as what was not encrypted is decrypted.
func (e *Endpoint) SnapshotBytes(id string) []byte {
	var data []byte
	e.locked(func() {
		t := e.world.things[id]
		if t == nil {
			return
		}
		filling := []byte{0}
		if t.Doc.Bool("Encrypted") {
			filling = []byte{0xa5}
		}
		for index, block := range t.blocks {
			if end := int(index)*blockSize + len(block); end > len(data) {
				data = append(data, bytes.Repeat(filling, end-len(data))...)
			}
			copy(data[int(index)*blockSize:], block)
		}
	})
	return data
}

// SnapshotBlocks is how many blocks of a snapshot are no holes.
func (e *Endpoint) SnapshotBlocks(id string) int {
	n := 0
	e.locked(func() { n = len(e.world.things[id].blocks) })
	return n
}

// Quota sets one: "ec2", "L-1216C47A".
func (e *Endpoint) Quota(service, code string, value float64) {
	e.locked(func() { e.world.quotas[service+"/"+code] = value })
}

// EncryptByDefault lets each new volume and snapshot be encrypted.
func (e *Endpoint) EncryptByDefault(yes bool) { e.locked(func() { e.world.encrypt = yes }) }

// Tag tags something as another program of the account would.
func (e *Endpoint) Tag(id, name, value string) {
	e.locked(func() { e.world.things[id].Tags[name] = value })
}
