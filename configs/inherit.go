package configs

import (
	"maps"
	"slices"
	"strings"
)

// heritage is what an image hands on to its children.
type heritage struct {
	image    DiskImage
	hasAge   bool // rebuild-age is given
	complete bool // all its parents are there
	pending  bool // its parents are being looked for
}

// mostParents is how many parents an image may have, one above the other.
const mostParents = 100

// resolveImages makes the images, parents applied root first.
func (l *loader) resolveImages() {
	for _, raw := range l.images.order {
		from := l.inherit(raw)
		if raw.abstract {
			continue
		}
		image := from.image.clone()
		l.addSecrets(&image, l.secure.envVars[raw.name])
		l.addSecrets(&image, secretsByName(image.EnvVars))
		l.addSecrets(&image, l.sealed.vars(image.EnvVars))
		if image.RebuildSchedule != "" && !from.hasAge {
			image.RebuildAge = 0 // the schedule alone decides
		}
		if len(image.KeepFormats) > 0 && !image.DeleteAfterUpload {
			raw.report(notice, "keep-formats has no effect without delete-after-upload")
		}
		if image.Validate != nil && image.Validate.Label != "" {
			raw.later(func() { l.checkValidate(raw.value, image.Name, image.Validate.Label) })
		}
		l.cfg.DiskImages = append(l.cfg.DiskImages, image)
	}
}

// inherit decodes an image over what its parent hands on. Each image is decoded
// once, however many children it has. Secrets are handed on by abstract images
// only.
func (l *loader) inherit(raw *rawImage) *heritage {
	if raw.heritage != nil {
		return raw.heritage
	}
	raw.heritage = &heritage{pending: true}
	h := heritage{image: defaultDiskImage(""), complete: true}
	if raw.parent != "" {
		h = *l.parentOf(raw)
		h.image = h.image.clone()
	}
	h.image.Name = raw.name
	have := raw.decode("disk image", imageKeys(&h.image))
	h.hasAge = h.hasAge || have["rebuild-age"]
	if raw.abstract {
		l.addSecrets(&h.image, l.secure.envVars[raw.name])
	}
	raw.heritage = &h
	return raw.heritage
}

// parentOf is what an image inherits. It is not complete if a parent is missing, the parents form a circle, or there
// are more than mostParents of them; each of these is reported once.
func (l *loader) parentOf(raw *rawImage) *heritage {
	nothing := &heritage{image: defaultDiskImage("")}
	if names := l.tooManyParents(raw); names != nil {
		if !l.images.tooDeep {
			l.images.tooDeep = true
			raw.fail("parent: more than %d parents, one above the other: %s", mostParents, someSteps(names))
		}
		return nothing
	}
	parent, ok := l.images.byName[raw.parent]
	if !ok {
		l.section("diskimages").lacks(raw.value, raw.parent, "the parent %q is not among diskimages%s",
			raw.parent, l.similarImage(raw.parent, raw.name))
		return nothing
	}
	if parent.heritage != nil && parent.heritage.pending {
		names := []string{parent.name}
		for at := parent; len(names) == 1 || at != parent; {
			at = l.images.byName[at.parent]
			names = append(names, at.name)
		}
		parent.fail("the parents form a circle: %s", someSteps(names))
		return nothing
	}
	return l.inherit(parent)
}

// tooManyParents names an image and its parents if there are more than mostParents; nil if there are fewer, or if they
// lead into a circle that parentOf finds.
func (l *loader) tooManyParents(raw *rawImage) []string {
	seen := map[*rawImage]bool{}
	var names []string
	for at := raw; at != nil; at = l.images.byName[at.parent] {
		if seen[at] {
			return nil
		}
		seen[at] = true
		if names = append(names, at.name); len(names) > mostParents+1 {
			return names
		}
	}
	return nil
}

// someSteps shows a way that may be very long.
func someSteps(names []string) string {
	if len(names) > 12 {
		names = slices.Concat(names[:5], []string{"…"}, names[len(names)-5:])
	}
	return strings.Join(names, " -> ")
}

// clone is a copy that shares nothing that decoding changes.
func (i *DiskImage) clone() DiskImage {
	c := *i
	c.Elements = slices.Clip(c.Elements) // which only ever grow
	c.EnvVars = maps.Clone(c.EnvVars)
	c.Metadata = maps.Clone(c.Metadata)
	return c
}
