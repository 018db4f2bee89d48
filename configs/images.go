package configs

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// imageSet holds what diskimages says, before parents are applied.
type imageSet struct {
	byName map[string]*rawImage
	order  []*rawImage
}

// rawImage is one entry of diskimages.
type rawImage struct {
	value
	name     string
	parent   string
	abstract bool
}

// diskImages reads the entries. Each is decoded once here, so that abstract
// ones without children are checked too, and again for each image that is made
// of it.
func (l *loader) diskImages(v value) {
	named(&l.images.order, func(r *rawImage) string { return r.name }, l.diskImage)(v)
	for _, raw := range l.images.order {
		l.images.byName[raw.name] = raw
	}
}

func (l *loader) diskImage(v value) *rawImage {
	raw := &rawImage{value: v}
	scratch := defaultDiskImage("")
	keys := imageKeys(&scratch)
	keys["name"] = checkedName("image", &raw.name)
	keys["parent"] = text(&raw.parent)
	keys["abstract"] = flag(&raw.abstract)
	v.require(v.decode("disk image", keys), "name")
	return raw
}

// imageKeys is the schema of a disk image. Decoding an image over its parent
// is all there is to inheritance: lists of elements and mappings grow, every
// other key that is given replaces, false and 0 included.
func imageKeys(image *DiskImage) fields {
	skip := func(value) {}
	return fields{
		"name": skip, "parent": skip, "abstract": skip,

		"dib-cmd":             command(&image.DIBCmd),
		"formats":             formats(&image.Formats),
		"keep-formats":        formats(&image.KeepFormats),
		"delete-after-upload": flag(&image.DeleteAfterUpload),
		"rebuild-age":         rebuildAge(&image.RebuildAge),
		"release":             text(&image.Release),
		"build-timeout":       buildTimeout(&image.BuildTimeout),
		"elements":            elements(&image.Elements),
		"env-vars":            envVars(&image.EnvVars),
		"pause":               flag(&image.Pause),
		"username":            text(&image.Username),
		"python-path":         text(&image.PythonPath),
		"shell-type":          text(&image.ShellType),
		"metadata":            textMap(&image.Metadata),

		// Ours.
		"rebuild-schedule": schedule(&image.RebuildSchedule),
		"rebuild-timezone": timezone(&image.RebuildTimezone),
		"rebuild-jitter":   number(&image.RebuildJitter, 0, 100),
		"build-windows":    buildWindows(&image.BuildWindows),
		"keep-builds":      number(&image.KeepBuilds, 1, 1000),
		"architecture":     architecture(&image.Architecture),
	}
}

// resolveImages makes the images, parents applied root first.
func (l *loader) resolveImages() {
	for _, raw := range l.images.order {
		chain := l.ancestry(raw)
		if raw.abstract || chain == nil {
			continue
		}
		image := defaultDiskImage(raw.name)
		have := present{}
		for _, one := range chain {
			maps.Copy(have, one.decode("disk image", imageKeys(&image)))
			if one.abstract || one == raw {
				l.addSecrets(&image, l.secure.envVars[one.name])
			}
		}
		if image.RebuildSchedule != "" && !have["rebuild-age"] {
			image.RebuildAge = 0 // the schedule alone decides
		}
		if len(image.KeepFormats) > 0 && !image.DeleteAfterUpload {
			raw.report(notice, "keep-formats has no effect without delete-after-upload")
		}
		l.cfg.DiskImages = append(l.cfg.DiskImages, image)
	}
}

// ancestry is the image and its parents, the root first. It is nil when a
// parent is missing or the parents form a circle.
func (l *loader) ancestry(raw *rawImage) []*rawImage {
	chain := []*rawImage{raw}
	names := []string{raw.name}
	for at := raw; at.parent != ""; {
		parent, ok := l.images.byName[at.parent]
		if !ok {
			at.fail("the parent %q is not among diskimages%s", at.parent, l.similarImage(at.parent))
			return nil
		}
		names = append(names, parent.name)
		if slices.Contains(chain, parent) {
			raw.fail("the parents form a circle: %s", strings.Join(names, " -> "))
			return nil
		}
		chain = append(chain, parent)
		at = parent
	}
	slices.Reverse(chain)
	return chain
}

// similarImage is a hint for a name that no image has.
func (l *loader) similarImage(name string) string {
	return didYouMean(name, slices.Collect(maps.Keys(l.images.byName)))
}

// checkImage reports a reference to an image that is never built.
func (l *loader) checkImage(v value, name string) {
	switch raw, ok := l.images.byName[name]; {
	case !ok:
		v.fail("no disk image is called %q%s", name, l.similarImage(name))
	case raw.abstract:
		v.fail("the disk image %q is abstract, it is never built", name)
	}
}

// addSecrets overlays what the secure file has for an image.
func (l *loader) addSecrets(image *DiskImage, secrets EnvVars) {
	maps.Copy(image.EnvVars, secrets)
	names := slices.Concat(image.SecretEnvVars, slices.Collect(maps.Keys(secrets)))
	slices.Sort(names)
	image.SecretEnvVars = slices.Compact(names)
}

// rebuildAge: 0 is an age that is never reached.
func rebuildAge(out *time.Duration) decodeFunc {
	return func(v value) {
		wholeSeconds(out, 0)(v)
		if *out == 0 {
			v.report(notice, "0 never rebuilds because of age (Nodepool takes 86400, or the parent's)")
		}
	}
}

// buildTimeout: 0 is the default, as in Nodepool, even when a parent has another.
func buildTimeout(out *time.Duration) decodeFunc {
	return func(v value) {
		wholeSeconds(out, 0)(v)
		*out = cmp.Or(*out, defaultBuildTimeout)
	}
}

// formats decodes the formats of image files, which become their endings.
func formats(out *[]string) decodeFunc {
	return func(v value) {
		texts(out)(v)
		for _, format := range *out {
			if !isFormat(format) {
				v.fail("%q is no image format", format)
			}
		}
	}
}

// imageFormat decodes one format.
func imageFormat(out *string) decodeFunc {
	return func(v value) {
		text(out)(v)
		if !isFormat(*out) {
			v.fail("expected an image format as qcow2 or raw, got %s", v.describe())
		}
	}
}

func isFormat(s string) bool {
	return s != "" && len(s) <= 20 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// elements decodes names that become arguments of diskimage-builder.
func elements(out *[]string) decodeFunc {
	return func(v value) {
		for _, item := range v.items() {
			name, ok := item.text()
			if ok && (name == "" || name[0] == '-' || strings.ContainsAny(name, " \t\n")) {
				item.fail("%q is no name of an element", name)
			}
			*out = append(*out, name)
		}
	}
}

// envVars decodes variables, whose values may be secrets.
func envVars(out *EnvVars) decodeFunc {
	return func(v value) {
		v.secret = true
		textMap(out)(v)
		for name := range *out {
			if name == "" || strings.ContainsAny(name, "=\x00") {
				v.fail("a name is empty or holds a '='") // which may be a secret
			}
		}
	}
}

// command decodes a command line, which must name a command.
func command(out *string) decodeFunc {
	return func(v value) {
		text(out)(v)
		if strings.TrimSpace(*out) == "" {
			v.fail("the command is empty")
		}
	}
}

// schedule decodes a cron expression. What its fields may hold is judged by
// the builder, which has the parser.
func schedule(out *string) decodeFunc {
	return func(v value) {
		text(out)(v)
		count := len(strings.Fields(*out))
		switch {
		case strings.Contains(*out, "="):
			v.fail("the time zone belongs into rebuild-timezone")
		case strings.HasPrefix(*out, "@") && count == 1:
		case *out != "" && count != 5:
			v.fail("expected five fields of cron (minute hour day month weekday) or @daily, got %s", v.describe())
		}
	}
}

func timezone(out *string) decodeFunc {
	return func(v value) {
		text(out)(v)
		if _, err := time.LoadLocation(*out); err != nil || *out == "" || *out == "Local" {
			v.fail("expected a time zone as Europe/Berlin, got %s", v.describe())
		}
	}
}

// architecture decodes the name of a processor architecture in anybody's
// spelling into Go's.
func architecture(out *string) decodeFunc {
	spellings := map[string]string{
		"x86_64": "amd64", "aarch64": "arm64", "armhf": "arm", "armv7l": "arm",
		"i386": "386", "i686": "386", "ppc64el": "ppc64le",
	}
	return func(v value) {
		checkedName("architecture", out)(v)
		*out = cmp.Or(spellings[*out], *out)
	}
}
