package configs

import (
	"cmp"
	_ "embed"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"poolkeeper/configs/yamltext"
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

//go:embed vendors.yml
var vendorProfiles []byte

// VendorProfile is what openstacksdk knows of a public cloud, as an entry of clouds-public.yaml.
func VendorProfile(name string) (yaml.Node, bool) {
	var file struct {
		Public map[string]yaml.Node `yaml:"public-clouds"`
	}
	if err := yaml.Unmarshal(vendorProfiles, &file); err != nil {
		panic(err) // the file is part of the program
	}
	entry, ok := file.Public[name]
	return entry, ok
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
			vendorFormat(cloud.Profile), defaultImageFormat)
		if !isFormat(p.ImageFormat) {
			l.found.add(fault, Finding{
				File: l.cfg.Path, Key: "providers[" + p.Name + "]",
				Message: "the cloud's image_format in clouds.yaml is no image format",
			})
		}
	}
}

// vendorFormat is the image format of a vendor's profile; "" if it says none.
func vendorFormat(profile string) string {
	entry, _ := VendorProfile(profile)
	return yamltext.Text(&entry, "image_format")
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
			line, why := SyntaxOf(content) // the parser's own words may quote a secret
			if why != "" {
				why = ": " + why
			}
			l.found.add(notice, Finding{File: path, Line: line, Message: "the file cannot be read, image formats are taken to be " + defaultImageFormat + why})
			l.cfg.HalfRead = &Finding{File: path, Line: line, Message: "the file cannot be read, the old content stays in use" + why}
			return &cloudsFile{}
		}
		return file
	}
	return &cloudsFile{}
}
