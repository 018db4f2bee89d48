package configs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// section is a list whose items are referred to by name: diskimages, labels,
// the cloud-images of a provider.
type section struct {
	// doubtful says that the list may not hold all that was meant: it has an
	// item without a name, is no list, comes twice, or its key is misspelt.
	doubtful bool
	why      *Finding // what says so; nil when that is an error in any case
	missing  []reference
}

// reference is a name that a section should have and has not.
type reference struct {
	value
	name    string
	message string
}

// section finds a section by its place.
func (l *loader) section(path string) *section {
	found := l.sections[path]
	if found == nil {
		found = &section{}
		l.sections[path] = found
	}
	return found
}

// doubt notes that names that are missing may be missing because of a finding.
func (s *section) doubt(why *Finding) {
	s.doubtful = true
	if s.why == nil {
		s.why = why
	}
}

// lacks notes that v refers to a name that the section has not.
func (s *section) lacks(v value, name, format string, args ...any) {
	s.missing = append(s.missing, reference{v, name, fmt.Sprintf(format, args...)})
}

// unused reports an item that no other section uses. Only a validation reports it: a daemon's file may be one of
// several that are written together.
func (v value) unused(isUsed func() bool, format string, args ...any) {
	if !v.src.load.opts.Validate {
		return
	}
	v.later(func() {
		if !isUsed() && !v.src.load.section("providers").doubtful {
			v.report(lint, format, args...)
		}
	})
}

// offered returns whether any pool has a label. What pools of unsupported drivers have is unknown, they may have it.
func (l *loader) offered(label string) bool {
	return len(l.cfg.Skipped) > 0 || slices.ContainsFunc(l.cfg.Providers, func(p Provider) bool {
		return slices.ContainsFunc(p.Pools, func(pool Pool) bool {
			return slices.ContainsFunc(pool.Labels, func(x PoolLabel) bool { return x.Name == label }) ||
				slices.ContainsFunc(pool.Nodes, func(n StaticNode) bool { return slices.Contains(n.Labels, label) })
		})
	})
}

// listed returns whether any provider lists a disk image, one with an unsupported driver included.
func (l *loader) listed(image string) bool {
	return slices.ContainsFunc(l.cfg.Providers, func(p Provider) bool {
		_, is := p.Image(image)
		return is
	}) || slices.ContainsFunc(l.cfg.Foreign, func(p ForeignProvider) bool { return slices.Contains(p.Images, image) })
}

// reportMissing tells of the names that are missing, each once, or of their
// common cause alone.
func (l *loader) reportMissing() {
	for _, path := range slices.Sorted(maps.Keys(l.sections)) {
		s := l.sections[path]
		first := map[string]*Finding{}
		for _, r := range s.missing {
			f := first[r.name]
			switch {
			case s.doubtful && s.why != nil:
				f = s.why
			case f == nil:
				f = r.note(fault, "%s", r.message)
			default:
				f.more++
			}
			first[r.name] = f
			r.leaveOut(f)
		}
		if s.doubtful && s.why != nil && len(first) > 0 {
			s.why.Message += "; it leaves undefined: " + some(slices.Sorted(maps.Keys(first)))
		}
	}
}

// some are the first few of many names.
func some(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
