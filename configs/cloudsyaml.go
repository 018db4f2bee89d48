package configs

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// cloudsFile is what we read of clouds.yaml, the file of the OpenStack tools:
// which format of image a cloud takes. Everything else, secrets above all, is
// for the provider.
type cloudsFile struct {
	path   string // "" when there is none
	Clouds map[string]struct {
		ImageFormat string `yaml:"image_format"`
		Profile     string `yaml:"profile"`
	} `yaml:"clouds"`
	PublicClouds map[string]struct {
		ImageFormat string `yaml:"image_format"`
	} `yaml:"public-clouds"`
}

// profileFormats are the formats of the public clouds that OpenStack's SDK
// knows by the name of a profile and that take something else than qcow2
// (openstack/config/vendors there). Profiles that the SDK fetches from the
// cloud are not followed: image-format says it for them.
var profileFormats = map[string]string{
	"betacloud": "raw", "catalyst": "raw", "citycloud": "raw", "dreamcompute": "raw", "rackspace": "vhd",
	"switchcloud": "raw", "switchengines": "raw", "unitedstack": "raw",
}

// fillImageFormats gives each provider the format that its cloud takes, unless
// the configuration says it.
func (l *loader) fillImageFormats() {
	var clouds, public *cloudsFile
	for i := range l.cfg.Providers {
		p := &l.cfg.Providers[i]
		driver, _ := driverNamed(p.Driver)
		if p.ImageFormat != "" || driver.noImages {
			continue
		}
		if clouds == nil {
			clouds, public = l.cloudsFile("OS_CLIENT_CONFIG_FILE", "clouds"), l.cloudsFile("OS_CLIENT_VENDOR_FILE", "clouds-public")
		}
		cloud, known := clouds.Clouds[p.Cloud]
		if !known && clouds.path != "" && driver.cloudsYAML && p.Cloud != "" && p.Cloud != "envvars" {
			// The daemons may have another file.
			l.clouds[p.Name].report(notice, "%s has no cloud %q, it has %s", clouds.path, p.Cloud,
				strings.Join(slices.Sorted(maps.Keys(clouds.Clouds)), ", "))
		}
		p.ImageFormat = cmp.Or(cloud.ImageFormat, public.PublicClouds[cloud.Profile].ImageFormat,
			profileFormats[cloud.Profile], defaultImageFormat)
		if !isFormat(p.ImageFormat) {
			l.found.add(fault, Finding{
				File: l.cfg.Path, Key: "providers[" + p.Name + "]",
				Message: "the cloud's image_format in clouds.yaml is no image format",
			})
		}
	}
}

// searchPath is where the OpenStack tools look for a file, in their order: the one that the
// environment names, the current directory, the home, the system.
func (l *loader) searchPath(variable, base string) []string {
	var paths []string
	if path, ok := l.env(variable); ok && path != "" {
		paths = append(paths, path)
	}
	dirs := []string{"."}
	if dir, ok := l.env("XDG_CONFIG_HOME"); ok && dir != "" {
		dirs = append(dirs, filepath.Join(dir, "openstack"))
	} else if home, ok := l.env("HOME"); ok && home != "" {
		dirs = append(dirs, filepath.Join(home, ".config/openstack"))
	}
	dirs = append(dirs, "/etc/openstack")
	for _, dir := range dirs {
		for _, ext := range []string{".yaml", ".yml", ".json"} {
			paths = append(paths, filepath.Join(dir, base+ext))
		}
	}
	return paths
}

// cloudsFile reads the first file that there is. It is empty when there is none.
func (l *loader) cloudsFile(variable, base string) *cloudsFile {
	for _, path := range l.searchPath(variable, base) {
		content, err := l.read(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		file := &cloudsFile{path: path}
		if err == nil {
			err = yaml.Unmarshal(content, file)
		}
		if err != nil {
			// The parser's words may quote a secret.
			l.found.add(notice, Finding{File: path, Message: "the file cannot be read, image formats are taken to be " + defaultImageFormat})
			return &cloudsFile{}
		}
		return file
	}
	return &cloudsFile{}
}
