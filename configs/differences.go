package configs

import (
	"fmt"
	"reflect"
	"slices"
)

// Differences says what one configuration has that the other has not, a line for
// each item, for the log of a reload. It shows names and limits, no values that may
// be secret.
func Differences(before, after *Config) []string {
	var lines []string
	compare(&lines, "image", before.DiskImages, after.DiskImages, func(x DiskImage) string { return x.Name }, nil)
	compare(&lines, "label", before.Labels, after.Labels, func(x Label) string { return x.Name }, nil)
	compare(&lines, "provider", before.Providers, after.Providers, func(x Provider) string { return x.Name },
		func(a, b Provider) {
			owner := "provider " + a.Name + ": "
			compare(&lines, owner+"image", a.DiskImages, b.DiskImages, func(x ProviderImage) string { return x.Name }, nil)
			compare(&lines, owner+"pool", a.Pools, b.Pools, func(x Pool) string { return x.Name }, func(p, q Pool) {
				limits(&lines, owner+"pool "+p.Name+": ", p, q)
				compare(&lines, owner+"pool "+p.Name+": label", p.Labels, q.Labels, poolLabelName, nil)
			})
		})
	compare(&lines, "source", before.Sources, after.Sources, func(x Source) string { return x.Name }, nil)
	compare(&lines, "hook", before.Hooks, after.Hooks, func(x Hook) string { return x.Name }, nil)
	for _, f := range after.Frozen {
		if !slices.Contains(before.Frozen, f) {
			lines = append(lines, "left out: "+f.String())
		}
	}
	return lines
}

// compare tells which items of two lists are added, removed and changed. Of what
// has changed, more says what.
func compare[T any](lines *[]string, kind string, before, after []T, name func(T) string, more func(a, b T)) {
	for _, a := range before {
		at := slices.IndexFunc(after, func(b T) bool { return name(b) == name(a) })
		switch {
		case at < 0:
			*lines = append(*lines, fmt.Sprintf("%s %s is removed", kind, name(a)))
		case !reflect.DeepEqual(a, after[at]):
			*lines = append(*lines, fmt.Sprintf("%s %s is changed", kind, name(a)))
			if more != nil {
				more(a, after[at])
			}
		}
	}
	for _, b := range after {
		if !slices.ContainsFunc(before, func(a T) bool { return name(a) == name(b) }) {
			*lines = append(*lines, fmt.Sprintf("%s %s is added", kind, name(b)))
		}
	}
}

// limits tells which limits of a pool have changed.
func limits(lines *[]string, owner string, p, q Pool) {
	show := func(n int) string {
		if n == none {
			return "no limit"
		}
		return fmt.Sprint(n)
	}
	for _, limit := range []struct {
		key  string
		a, b int
	}{
		{"max-servers", p.MaxServers, q.MaxServers},
		{"max-cores", p.MaxCores, q.MaxCores},
		{"max-ram", p.MaxRAM, q.MaxRAM},
		{"max-volumes", p.MaxVolumes, q.MaxVolumes},
		{"max-volume-gb", p.MaxVolumeGB, q.MaxVolumeGB},
	} {
		if limit.a != limit.b {
			*lines = append(*lines, fmt.Sprintf("%s%s is %s, was %s", owner, limit.key, show(limit.b), show(limit.a)))
		}
	}
}
