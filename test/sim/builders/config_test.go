package builders

import (
	"fmt"
	"path/filepath"
	"testing"

	"poolkeeper/configs"
)

// configuration is the site's: an image of two formats by age, one by schedule, of which one build is
// kept, and no file that all have got, and one on request only; three providers that want different ones.
const configuration = `
zookeeper-servers: [{host: 127.0.0.1}]
images-dir: %s
build-log-dir: %s
diskimages:
  - {name: debian, elements: [debian], rebuild-age: %d, build-timeout: 1200, rebuild-jitter: 10}
  - {name: fedora, elements: [fedora], %s, keep-builds: 1, delete-after-upload: true, build-timeout: 1200, rebuild-jitter: 0}
  - {name: alpine, elements: [alpine], rebuild-age: 31536000, build-timeout: 1200, rebuild-jitter: 0%s}
providers:
  - {name: north, driver: fake, cloud: fake, image-type: qcow2, image-upload-timeout: 900, diskimages: [{name: debian}, {name: fedora}]}
  - {name: south, driver: fake, cloud: fake, image-type: raw, image-upload-timeout: 900, diskimages: [{name: debian}, {name: fedora}, {name: alpine}]}
  - {name: west, driver: fake, cloud: fake, image-type: qcow2, image-upload-timeout: 900, diskimages: [{name: debian}%s]}
`

// images and clouds are the names of all.
var (
	images = []string{"debian", "fedora", "alpine"}
	clouds = []string{"north", "south", "west"}
)

// wanted are the images of each provider that all versions want there.
var wanted = map[string][]string{"north": {"debian", "fedora"}, "south": {"debian", "fedora", "alpine"}, "west": {"debian"}}

// version is one of the configurations that a site may have.
type version int

// The versions: the first is the usual one; others build oftener, and keep, want or lack something; with
// the last nothing becomes due by itself.
const (
	usual version = iota
	frequent
	wider
	calm
)

// load reads a version as the daemon of a host does.
func (v version) load(t *testing.T, folder string) *configs.Config {
	t.Helper()
	age, schedule, more, also := 2400, `rebuild-schedule: "*/30 * * * *", rebuild-age: 31536000`, "", ""
	switch v {
	case frequent:
		age, more = 1200, ", keep-builds: 3"
	case wider:
		also = ", {name: fedora}"
	case calm:
		age, schedule = 31536000, "rebuild-age: 31536000"
	}
	text := fmt.Sprintf(configuration, filepath.Join(folder, "images"), filepath.Join(folder, "logs"), age, schedule, more, also)
	cfg, err := configs.Load("site.yaml", configs.Options{Text: []byte(text), Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
