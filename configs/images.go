package configs

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// imageSet holds what diskimages says, before parents are applied.
type imageSet struct {
	byName map[string]*rawImage
	// tooDeep is set once an image with too many parents is reported.
	tooDeep bool
	order   []*rawImage
}

// rawImage is one entry of diskimages.
type rawImage struct {
	value
	name     string
	parent   string
	abstract bool
	heritage *heritage // nil until it is known
}

// diskImages reads the entries. Each is decoded once here, so that abstract
// ones without children are checked too, and again for each image that is made
// of it.
func (l *loader) diskImages(v value) {
	unique(refused, &l.images.order, func(r *rawImage) string { return r.name }, l.diskImage)(v)
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
	v.unused(func() bool { return raw.abstract || raw.name == "" || l.listed(raw.name) }, "no provider lists the image %q, it is never uploaded", raw.name)
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
		"host-labels":      hostLabels(&image.HostLabels),
		"validate":         validate(&image.Validate),
		"canary":           canary(&image.Canary),
	}
}

// similarImage is a hint for a name that no image has, other than that of the
// image which refers to it.
func (l *loader) similarImage(name, itself string) string {
	return didYouMean(name, slices.DeleteFunc(slices.Collect(maps.Keys(l.images.byName)),
		func(known string) bool { return known == itself }))
}

// checkImage reports a reference to an image that is never built. It is false
// when it did.
func (l *loader) checkImage(v value, name string) bool {
	switch raw, ok := l.images.byName[name]; {
	case !ok:
		l.section("diskimages").lacks(v, name, "no disk image is called %q%s", name, l.similarImage(name, ""))
	case raw.abstract:
		v.fail("the disk image %q is abstract, it is never built", name)
	default:
		return true
	}
	return false
}

// secretsByName are the variables whose names tell of a secret, whatever file
// they stand in.
func secretsByName(vars EnvVars) EnvVars {
	secrets := EnvVars{}
	for name, value := range vars {
		if LooksSecret(name) {
			secrets[name] = value
		}
	}
	return secrets
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
		v.sane(*out, 30*day)
		*out = cmp.Or(*out, defaultBuildTimeout)
	}
}

// knownFormats are what diskimage-builder makes, with and without qemu-img.
var knownFormats = []string{
	"aci", "bochs", "cloop", "dmg", "docker", "gzip", "luks", "ova", "parallels", "qcow", "qcow2", "qed", "raw",
	"squashfs", "tar", "tgz", "vdi", "vhd", "vhdx", "vmdk", "vpc",
}

// formats decodes the formats of image files, which become their endings.
func formats(out *[]string) decodeFunc {
	return func(v value) {
		texts(out)(v)
		*out = slices.DeleteFunc(*out, func(format string) bool { return !v.checkFormat(format) })
	}
}

// imageFormat decodes one format.
func imageFormat(out *string) decodeFunc {
	return func(v value) {
		text(out)(v)
		if !v.checkFormat(*out) {
			*out = ""
		}
	}
}

// checkFormat refuses what cannot be the ending of a file. A format that we do
// not know may be one of the site's own dib-cmd.
func (v value) checkFormat(format string) bool {
	switch {
	case !isFormat(format):
		v.fail("%q is no image format, as qcow2 or raw", format)
		return false
	case !slices.Contains(knownFormats, format):
		v.report(refused, "%q is no image format of diskimage-builder%s", format, didYouMean(format, knownFormats))
	}
	return true
}

func isFormat(s string) bool {
	return s != "" && len(s) <= 20 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// elements decodes names that become arguments of diskimage-builder. Nodepool
// makes several of an item with blanks.
func elements(out *[]string) decodeFunc {
	return func(v value) {
		v.says(func() Shape { return Shape{Grows: true} })
		for _, item := range v.items() {
			text, _ := item.text()
			names := strings.Fields(text)
			for _, name := range names {
				if name[0] == '-' {
					item.fail("%q is no name of an element; does the item hold the line below it?", name)
				}
			}
			switch {
			case item.node.Kind == yaml.ScalarNode && len(names) == 0:
				item.fail("the name of an element is empty")
			case len(names) > 1:
				item.report(refused, "%q are %d elements; write an item for each", text, len(names))
			}
			*out = append(*out, names...)
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
		words, err := SplitWords(*out)
		switch {
		case err != nil:
			v.report(refused, "no build can begin: %v", err)
		case len(words) == 0:
			v.fail("the command is empty")
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

// spellings are the architectures by all their names, Go's among them.
var spellings = map[string]string{
	"x86_64": "amd64", "aarch64": "arm64", "armhf": "arm", "armv7l": "arm",
	"i386": "386", "i686": "386", "ppc64el": "ppc64le",
	"amd64": "amd64", "arm64": "arm64", "arm": "arm", "386": "386", "ppc64": "ppc64", "ppc64le": "ppc64le",
	"s390x": "s390x", "riscv64": "riscv64", "loong64": "loong64", "mips64le": "mips64le",
}

// architecture decodes the name of a processor architecture in anybody's
// spelling into Go's.
func architecture(out *string) decodeFunc {
	return func(v value) {
		checkedName("architecture", out)(v)
		if *out != "" && spellings[*out] == "" {
			v.report(refused, "no builder has the architecture %q%s", *out,
				didYouMean(*out, slices.Collect(maps.Keys(spellings))))
		}
		*out = cmp.Or(spellings[*out], *out)
	}
}
