package configs

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// openStackDriver is the entry of the table of drivers.
func openStackDriver() driver {
	return driver{
		name: DriverOpenStack, defaults: defaultOpenStack, keys: (*loader).openStackKeys, cloudsYAML: true,
		check: func(_ *loader, v value, p *Provider, have present) {
			if !have["cloud"] {
				v.report(refused, `the key "cloud" is missing; the variables OS_* must name the cloud`)
			}
			checkImport(v, p)
		},
	}
}

// cloudKeys are those of drivers that store images and launch nodes.
func (l *loader) cloudKeys(p *Provider) fields {
	return fields{
		"boot-timeout":         patience(&p.BootTimeout, day),
		"launch-timeout":       patience(&p.LaunchTimeout, 7*day),
		"launch-retries":       number(&p.LaunchRetries, 1, unlimited),
		"image-upload-timeout": patience(&p.ImageUploadTimeout, 7*day),
		"image-name-format":    l.nameFormat(p),
		"image-format":         imageFormat(&p.ImageFormat), // ours
		"post-upload-hook":     text(&p.PostUploadHook),
		"diskimages":           named(&p.DiskImages, func(x ProviderImage) string { return x.Name }, l.providerImage),
	}
}

// openStackKeys is the schema of an OpenStack provider, and of a fake one.
func (l *loader) openStackKeys(p *Provider) fields {
	keys := l.cloudKeys(p)
	maps.Copy(keys, fields{
		"cloud":                     l.cloudName(p),
		"region-name":               text(&p.Region),
		"rate":                      pause(&p.Rate),
		"image-import-method":       importMethod(&p.ImageImportMethod), // ours
		"image-import-url":          text(&p.ImageImportURL),            // ours
		"clean-floating-ips":        flag(&p.CleanFloatingIPs),
		"port-cleanup-interval":     wholeSeconds(&p.PortCleanupEvery, 0),
		"unanswered-create-timeout": unansweredCreate(&p.UnansweredCreateTimeout), // ours
		"nodepool-id":               ignored("nodes are found by the provider's name"),
		"cloud-images":              named(&p.CloudImages, func(x CloudImage) string { return x.Name }, l.cloudImage),
		"pools":                     named(&p.Pools, poolName, l.openStackPool(p)),
	})
	return keys
}

// unansweredCreate decodes how long a creation without an answer is waited for.
func unansweredCreate(out *time.Duration) decodeFunc {
	return func(v value) {
		wholeSeconds(out, 0)(v)
		v.sane(*out, day)
	}
}

// cloudName decodes the name of a cloud, and notes where it stands: clouds.yaml
// is read later.
func (l *loader) cloudName(p *Provider) decodeFunc {
	return func(v value) {
		text(&p.Cloud)(v)
		l.clouds[p.Name] = v
	}
}

func (l *loader) providerImage(v value) ProviderImage {
	image := ProviderImage{ConnectionType: defaultConnection, Meta: map[string]string{}}
	have := v.decode("provider image", fields{
		"name":            text(&image.Name),
		"pause":           flag(&image.Pause),
		"config-drive":    optionalFlag(&image.ConfigDrive),
		"connection-type": text(&image.ConnectionType),
		"connection-port": port(&image.ConnectionPort),
		"meta":            textMap(&image.Meta),
	})
	v.require(have, "name")
	if have["name"] {
		v.later(func() { l.checkImage(v, image.Name) })
	}
	if !have["connection-port"] {
		image.ConnectionPort = ConnectionPort(image.ConnectionType)
	}
	return image
}

func (l *loader) cloudImage(v value) CloudImage {
	image := CloudImage{ConnectionType: defaultConnection, PythonPath: defaultPythonPath}
	have := v.decode("cloud image", fields{
		"name":            notEmpty(&image.Name),
		"image-id":        text(&image.ImageID),
		"image-name":      text(&image.ImageName),
		"config-drive":    optionalFlag(&image.ConfigDrive),
		"username":        text(&image.Username),
		"python-path":     text(&image.PythonPath),
		"shell-type":      text(&image.ShellType),
		"connection-type": text(&image.ConnectionType),
		"connection-port": port(&image.ConnectionPort),
	})
	v.require(have, "name")
	if image.ImageID != "" && image.ImageName != "" {
		v.fail("image-id and image-name exclude each other")
	}
	if image.ImageID == "" && image.ImageName == "" {
		image.ImageName = image.Name
	}
	if !have["connection-port"] {
		image.ConnectionPort = ConnectionPort(image.ConnectionType)
	}
	return image
}

// openStackPool decodes one pool of p.
func (l *loader) openStackPool(p *Provider) func(value) Pool {
	return func(v value) Pool {
		pool := defaultPool(p)
		keys := l.poolKeys(&pool)
		maps.Copy(keys, fields{
			"max-cores":             number(&pool.MaxCores, 0, unlimited),
			"max-ram":               number(&pool.MaxRAM, 0, unlimited),
			"max-volumes":           number(&pool.MaxVolumes, 0, unlimited),
			"max-volume-gb":         number(&pool.MaxVolumeGB, 0, unlimited),
			"ignore-provider-quota": flag(&pool.IgnoreProviderQuota),
			"availability-zones":    texts(&pool.AvailabilityZones),
			"networks":              texts(&pool.Networks),
			"security-groups":       texts(&pool.SecurityGroups),
			"auto-floating-ip":      flag(&pool.AutoFloatingIP),
			"host-key-checking":     flag(&pool.HostKeyChecking),
			"labels":                named(&pool.Labels, poolLabelName, l.openStackLabel(p)),
		})
		v.require(v.decode("pool", keys), "name")
		return pool
	}
}

func poolLabelName(label PoolLabel) string { return label.Name }

// openStackLabel decodes one label of a pool of p.
func (l *loader) openStackLabel(p *Provider) func(value) PoolLabel {
	return func(v value) PoolLabel {
		label := defaultPoolLabel()
		have := v.decode("pool label", fields{
			"name":                        l.labelName(&label.Name),
			"diskimage":                   text(&label.DiskImage),
			"cloud-image":                 text(&label.CloudImage),
			"flavor-name":                 text(&label.FlavorName),
			"min-ram":                     number(&label.MinRAM, 0, unlimited),
			"key-name":                    text(&label.KeyName),
			"console-log":                 flag(&label.ConsoleLog),
			"boot-from-volume":            flag(&label.BootFromVolume),
			"volume-size":                 number(&label.VolumeSize, 1, unlimited),
			"instance-properties":         textMap(&label.InstanceProperties),
			"dynamic-instance-properties": dynamicProperties(&label.DynamicProperties),
			"userdata":                    text(&label.UserData),
			"networks":                    texts(&label.Networks),
			"host-key-checking":           optionalFlag(&label.HostKeyChecking),
		})
		v.require(have, "name")
		if !have["flavor-name"] && !have["min-ram"] {
			v.lacks([]string{"flavor-name", "min-ram"}, "the label needs flavor-name, min-ram or both")
		}
		switch {
		case have["diskimage"] && have["cloud-image"]:
			v.fail("diskimage and cloud-image exclude each other")
		case !have["diskimage"] && !have["cloud-image"]:
			v.lacks([]string{"diskimage", "cloud-image"}, "the label needs either diskimage or cloud-image")
		}
		l.checkLabelImage(v, p, label)
		return label
	}
}

// checkLabelImage reports a label whose image its provider does not have.
func (l *loader) checkLabelImage(v value, p *Provider, label PoolLabel) {
	v.later(func() { // p is complete by then
		if label.DiskImage != "" {
			_, listed := p.Image(label.DiskImage)
			doubtful := l.section("providers[" + shown(p.Name) + "].diskimages").doubtful
			if l.checkImage(v, label.DiskImage) && !listed && !doubtful {
				v.report(lint, "the provider does not list the image %q, the label can never be launched", label.DiskImage)
			}
		}
		if label.CloudImage != "" {
			if _, listed := p.CloudImage(label.CloudImage); !listed {
				l.section("providers["+shown(p.Name)+"].cloud-images").lacks(v, label.CloudImage,
					"the provider's cloud-images has no %q", label.CloudImage)
			}
		}
	})
}

// port decodes a TCP port.
func port(out *int) decodeFunc { return exact(out, 1, 65535) }

// nameFormat decodes the name of an uploaded image, with places to be filled in.
// One that cannot be filled in makes uploads impossible, and nothing else.
func (l *loader) nameFormat(p *Provider) decodeFunc {
	return func(v value) {
		text(&p.ImageNameFormat)(v)
		for _, place := range places(p.ImageNameFormat) {
			if !slices.Contains([]string{"image_name", "timestamp", "upload_id"}, place) {
				v.item = nil // the provider goes on
				f := v.note(refused, "{%s} cannot be filled in, nothing is uploaded; there are {image_name}, {timestamp} and {upload_id}", place)
				l.noUploads[p.Name] = f.Error()
			}
		}
	}
}

// importMethod decodes how the cloud gets an image's data.
func importMethod(out *string) decodeFunc {
	return func(v value) {
		v.says(func() Shape { return Shape{OneOf: []string{"", "glance-direct", "web-download"}} })
		text(out)(v)
		if !slices.Contains([]string{"", "glance-direct", "web-download"}, *out) {
			v.fail("there are glance-direct and web-download; leave the key out for a plain upload")
		}
	}
}

// checkImport reports an import that lacks its address.
func checkImport(v value, p *Provider) {
	if p.ImageImportMethod == "web-download" && !strings.HasPrefix(p.ImageImportURL, "http") {
		v.fail("image-import-method web-download needs image-import-url, where the cloud finds the files of images-dir")
	}
}

// dynamicProperties decodes properties that name parts of a request.
func dynamicProperties(out *map[string]string) decodeFunc {
	known := []string{
		"id", "labels", "requestor", "requestor_data", "relative_priority",
		"event_id", "created_time", "tenant_name",
	}
	return func(v value) {
		textMap(out)(v)
		for name, format := range *out {
			for _, place := range places(format) {
				if what, ok := strings.CutPrefix(place, "request."); !ok || !slices.Contains(known, what) {
					v.fail("{%s} of %q cannot be filled in; there is {request.NAME} with %s",
						place, name, strings.Join(known, ", "))
				}
			}
		}
	}
}

// places are the names in braces of a format; {{ and }} are braces themselves.
func places(format string) []string {
	var names []string
	format = strings.NewReplacer("{{", "", "}}", "").Replace(format)
	for {
		_, rest, ok := strings.Cut(format, "{")
		if !ok {
			return names
		}
		var name string
		name, format, _ = strings.Cut(rest, "}")
		names = append(names, name)
	}
}
