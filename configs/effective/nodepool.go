package effective

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
)

// sinceText lists the keys that Poolkeeper has added to Nodepool's format, one path a line.
//
//go:embed since.txt
var sinceText string

// ForNodepool drops the keys that Poolkeeper has added to Nodepool's format, and the providers whose driver Nodepool lacks.
func (t *Tree) ForNodepool() {
	ours := map[string]bool{}
	for line := range strings.Lines(sinceText) {
		ours[strings.TrimSpace(line)] = true
	}
	t.Root.dropOurs("", ours)
}

// dropOurs does so below a value, which is at a path.
func (v *Value) dropOurs(at string, ours map[string]bool) {
	v.Fields = slices.DeleteFunc(v.Fields, func(f *Value) bool {
		path := strings.TrimPrefix(at+"."+f.Key, ".")
		// A fake provider has the keys of an openstack one, too.
		if ours[path] || ours[strings.Replace(path, "[fake]", "[openstack]", 1)] {
			return true
		}
		f.dropOurs(path, ours)
		return false
	})
	v.Items = slices.DeleteFunc(v.Items, func(i *Value) bool {
		item := at + "[]"
		if at == "providers" {
			item = "providers[" + cmp.Or(i.field("driver").text(), "openstack") + "]" // the default of Nodepool
		}
		i.dropOurs(item, ours)
		return ours[item+".driver"]
	})
}
