package listing

import (
	"time"

	"poolkeeper/zkmodel"
)

// ProviderImages lists the builds that a provider has uploads of: the first table of info.
func ProviderImages(images []*zkmodel.Image, provider string) *Table {
	t := &Table{kind: "builds", named: func(row []cell) string { return row[0].text + "-" + row[1].text }, columns: []column{
		{title: "Image Name", key: "image"},
		{title: "Build ID", key: "id", own: "build_id"},
		{title: "Upload IDs", key: "upload_ids"},
		{title: "States", key: "states", detail: true},
	}}
	for _, image := range images {
		t.gaps(image, func(g zkmodel.Gap) bool { return g.Provider == "" || g.Provider == provider }, "image", "id")
		for _, b := range image.Builds {
			var ids, states []string
			for _, u := range b.Uploads {
				if u.Provider == provider {
					t.note(u.Broken)
					ids, states = append(ids, u.ID), append(states, state(u.State, u.Broken).text)
				}
			}
			if len(ids) > 0 {
				t.rows = append(t.rows, []cell{text(image.Name), text(b.ID), list(ids), list(states)})
			}
		}
	}
	return t
}

// ProviderNodes lists the nodes of a provider: the second table of info. Of a node that
// cannot be read nobody knows the provider, so Broken tells of it.
func ProviderNodes(nodes []*zkmodel.Node, provider string, now time.Time) *Table {
	t := &Table{kind: "nodes", columns: []column{
		{title: "ID", key: "id"},
		{title: "Server ID", key: "server_id"},
		{title: "Label", key: "label", own: "labels", detail: true},
		{title: "State", key: "state", detail: true},
		{title: "Age", key: "age", own: "since", detail: true},
	}}
	for _, n := range nodes {
		t.note(n.Broken)
		if n.Provider == provider {
			t.rows = append(t.rows, []cell{
				text(n.ID), foreign(n.ExternalID), list(n.Type), state(n.State, n.Broken),
				nodeAge(changed(n.StateTime, n.Stat.Mtime), now),
			})
		}
	}
	return t
}

// Alien is an image in a cloud of which no ready upload has a record.
type Alien struct {
	Provider, Name, ID   string
	Image, Build, Upload string // whose it is, by its marks
	Record               string // what the tree says of that upload; "" is nothing
}

// Aliens lists such images: alien-image-list.
func Aliens(images []Alien) *Table {
	t := &Table{kind: "alien-images", named: func(row []cell) string { return row[2].text }, columns: []column{
		{title: "Provider", key: "provider", by: ByProvider},
		{title: "Name", key: "name"},
		{title: "Image ID", key: "id"},
		{title: "Image", key: "image", by: ByImage, detail: true},
		{title: "Build ID", key: "build_id", detail: true},
		{title: "Upload ID", key: "upload_id", detail: true},
		{title: "Record", key: "record", detail: true},
	}}
	for _, i := range images {
		t.rows = append(t.rows, []cell{
			text(i.Provider), text(i.Name), text(i.ID), text(i.Image), text(i.Build), text(i.Upload), text(i.Record),
		})
	}
	return t
}
