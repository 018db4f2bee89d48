// Package largesite makes up a site of any size, for tests and benchmarks of pages, and for people who want
// to look at them. What it makes depends on the size and on the time only.
package largesite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// Size says how much there is.
type Size struct{ Images, Providers, Nodes, Requests int }

// Overview is the site by which the pages are judged, Large the one of the benchmark.
var (
	Overview = Size{Images: 25, Providers: 5, Nodes: 60, Requests: 40}
	Large    = Size{Images: 200, Providers: 20, Nodes: 1000, Requests: 200}
)

// Site is the records of a site at a time, by their paths.
type Site struct {
	Size
	Now      time.Time
	Records  map[string]string
	Building []string // images whose build lock is held
}

var distributions = []string{
	"debian-12", "debian-13", "ubuntu-jammy", "ubuntu-noble", "rockylinux-9", "centos-9-stream", "centos-10-stream", "almalinux-9", "fedora-44", "gentoo-17", "opensuse-15",
	"openeuler-24", "debian-12-arm64", "debian-13-arm64", "ubuntu-jammy-arm64", "ubuntu-noble-arm64", "rockylinux-10", "debian-12-nested", "ubuntu-noble-nested",
	"ubuntu-noble-32gb", "debian-sid", "fips-rocky-9", "k8s-worker", "windows-2025", "freebsd-14",
}

var clouds = []string{"ovh-bhs1", "ovh-gra1", "rax-iad", "vexxhost-ca1", "openmetal-iad3"}

// Image is the name of the n-th image.
func Image(n int) string {
	if n < len(distributions) {
		return distributions[n]
	}
	return fmt.Sprintf("%s-%d", distributions[n%len(distributions)], n/len(distributions)+1)
}

// Provider is the name of the n-th provider.
func Provider(n int) string {
	if n < len(clouds) {
		return clouds[n]
	}
	return fmt.Sprintf("cloud-%02d", n+1)
}

// New makes the site as it is at a time.
func New(size Size, now time.Time) *Site {
	s := &Site{Size: size, Now: now.UTC(), Records: map[string]string{}}
	for n := range size.Images {
		s.image(n)
	}
	for n := range size.Nodes {
		s.node(n)
	}
	for n := range size.Requests {
		s.request(n)
	}
	s.daemons()
	s.rollouts()
	return s
}

// at is a record's state and when it got it.
func (s *Site) at(state string, ago time.Duration) string {
	return fmt.Sprintf(`{"state": %q, "state_time": %d`, state, s.Now.Add(-ago).Unix())
}

// The providers that something is the matter with.
const (
	down   = 3 // cannot be used
	paused = 4 // was paused by a person
)

// image makes builds and uploads of one image.
func (s *Site) image(n int) {
	name, hour := Image(n), time.Hour
	age := time.Duration(2+(n*7)%20) * hour
	switch {
	case n%12 == 7: // late
		age = 60 * hour
	case n%25 == 11: // never built
		s.build(name, 1, s.at("failed", 40*time.Minute)+`, "failures": 9, "reason": "disk-image-create: exit code 1: E: Unable to locate package linux-image-generic", "tail": "E: Unable to locate package linux-image-generic", "builder": "nb01"}`)
		return
	}
	ready := fmt.Sprintf(`, "builder": "nb0%d", "formats": "qcow2,raw", "phases": {"command": %d, "verify": %d}, "files": {"qcow2": {"size": %d, "sha256": "%064x", "md5": "%032x"}, "raw": {"size": 8589934592, "sha256": "%064x", "md5": "%032x"}},
		"log": "http://nb0%d.example.org:8006/log/%s-%010d"}`, 1+n%2, 900+n*31, 40+n, 1<<30+n<<20, n+1, n+2, n+3, n+4, 1+n%2, name, 7)
	s.build(name, 6, s.at("ready", age+24*hour)+ready)
	s.build(name, 7, s.at("ready", age)+ready)
	for p := range s.Providers {
		s.upload(name, 6, p, s.at("ready", age+23*hour)+fmt.Sprintf(`, "external_id": "0000-%d-%d", "external_name": "%s-6"}`, n, p, name))
		switch {
		case n%25 == 18 && p == 2: // is missing in one
			delete(s.Records, zkmodel.UploadPath(name, fmt.Sprintf("%010d", 6), Provider(p), fmt.Sprintf("%010d", 1)))
		case p == down:
			s.upload(name, 7, p, s.at("failed", time.Duration(10+n)*time.Minute)+fmt.Sprintf(
				`, "failures": %d, "reason": "Post \"https://image.vexxhost.example/v2/images\": 503 Service Unavailable (request %08x-77aa)"}`, 2+n%3, n*7919))
		case n == tried && p == 0:
			s.upload(name, 7, p, s.at("uploading", 5*time.Minute)+fmt.Sprintf(`, "builder": "nb01", "external_id": "1111-%d-%d"}`, n, p))
		case n%9 == 4 && p == 1:
			s.upload(name, 7, p, s.at("uploading", 4*time.Minute)+fmt.Sprintf(`, "builder": "nb01", "progress": {"sent": %d, "total": 8589934592, "rate": 52428800, "eta": 94}}`, int64(3+n%4)<<30))
		default:
			s.upload(name, 7, p, s.at("ready", age-hour)+fmt.Sprintf(`, "external_id": "1111-%d-%d", "external_name": "%s-7"}`, n, p, name))
		}
	}
	switch n % 12 {
	case 3: // is being built
		s.build(name, 8, s.at("building", 12*time.Minute)+fmt.Sprintf(`, "builder": "nb0%d"}`, 1+n%2))
		s.Building = append(s.Building, name)
	case 7: // fails
		s.build(name, 8, s.at("failed", 50*time.Minute)+`, "failures": 3, "reason": "disk-image-create: exit code 100: mirror.example.org: Connection timed out", "tail": "Err:1 http://mirror.example.org trixie InRelease\nConnection timed out\nE: Failed to fetch", "builder": "nb02"}`)
	}
}

func (s *Site) build(image string, id int, record string) {
	s.Records[zkmodel.BuildPath(image, fmt.Sprintf("%010d", id))] = record
}

func (s *Site) upload(image string, id, provider int, record string) {
	s.Records[zkmodel.UploadPath(image, fmt.Sprintf("%010d", id), Provider(provider), fmt.Sprintf("%010d", 1))] = record
}

// label is what nodes of an image are called.
func label(image int) string { return Image(image) + "-8GB" }

// node makes one node.
func (s *Site) node(n int) {
	p := n % max(1, s.Providers)
	image := (n / max(1, s.Providers)) % max(1, s.Images)
	minute := time.Minute
	state, more := s.at("in-use", time.Duration(3+n)*minute), fmt.Sprintf(`, "allocated_to": "200-%010d"`, n)
	switch {
	case p == paused || n%10 == 1:
		state, more = s.at("ready", time.Duration(1+n%40)*minute), ""
	case n%10 == 4:
		state = s.at("building", time.Duration(10+n)*time.Second)
	case n%20 == 7:
		state, more = s.at("deleting", time.Duration(14+n)*minute), `, "reason": "DELETE https://compute.example/servers: 409 Conflict"`
	case n%30 == 19:
		state, more = s.at("hold", 26*time.Hour), `, "comment": "ann looks at bug 1234567", "hold_expiration": 172800`
	case n%30 == 28:
		state, more = s.at("failed", 9*minute), fmt.Sprintf(`, "reason": "no SSH at 203.0.113.%d:22 after 2m0s"`, n%250)
	}
	s.Records[zkmodel.NodePath(fmt.Sprintf("%010d", 70000+n))] = state + more + fmt.Sprintf(`, "provider": %q, "pool": "main", "type": [%q], "external_id": "%08x-1111",
		"hostname": "np%010d", "interface_ip": "203.0.113.%d", "public_ipv4": "203.0.113.%d", "connection_port": 22, "image_id": %q, "launcher": "nl01-12-pool", "created_time": %d,
		"resources": {"instances": 1, "cores": 8, "ram": 8192}, "tenant_name": "tenant-%d"}`,
		Provider(p), label(image), n*99991, 70000+n, n%250, n%250,
		zkmodel.UploadPath(Image(image), fmt.Sprintf("%010d", 7), Provider(p), fmt.Sprintf("%010d", 1)), s.Now.Add(-time.Duration(4+n)*minute).Unix(), n%4)
}

// request makes one that waits.
func (s *Site) request(n int) {
	ago := time.Duration(20+n*25) * time.Second
	state, labels, more := s.at("requested", ago), label(n%max(1, s.Images)), ""
	switch n % 8 {
	case 3:
		state = s.at("pending", ago)
		more = fmt.Sprintf(`, "nodes": ["%010d"]`, 70000+n)
	case 5:
		labels = "gpu-large"
	case 6:
		labels = Image(11) + "-8GB"
	}
	s.Records[zkmodel.RequestPath(fmt.Sprintf("200-%010d", 300+n))] = state + more + fmt.Sprintf(
		`, "node_types": [%q], "requestor": "zuul/scheduler-%d", "relative_priority": %d, "event_id": "%032x", "created_time": %d, "tenant_name": "tenant-%d", "declined_by": [],
		"requestor_data": {"build_set_uuid": "%032x", "tenant_name": "tenant-%d", "pipeline_name": "gate", "job_name": "unit-%d"}}`,
		labels, n%2, n%7, n*7919, s.Now.Add(-ago).Unix(), n%4, n*104729, n%4, n%9)
}

// daemons makes builders, launchers and pools.
func (s *Site) daemons() {
	for n := range 2 {
		s.component(zkmodel.KindBuilder, fmt.Sprintf("nb0%d", n+1), `"state": "running", "version": "1.4.0"`)
		s.component(zkmodel.KindLauncher, fmt.Sprintf("nl0%d", n+1), `"state": "running", "version": "1.4.0"`)
		for p := range s.Providers {
			var labels []string
			for image := range s.Images {
				labels = append(labels, fmt.Sprintf("%q", label(image)))
			}
			more := ""
			switch p {
			case down:
				more = `, "trouble": "authenticate at https://auth.vexxhost.example/v3: 503 Service Unavailable"`
			case paused:
				more = `, "paused": true, "reason": "provider openmetal-iad3 is paused by ann: new switches"`
			}
			s.component(zkmodel.KindPool, fmt.Sprintf("nl0%d-%02d", n+1, p), fmt.Sprintf(`"state": "running", "version": "1.4.0", "provider_name": %q, "name": "main", "id": "nl0%d-%d-main", "knows": ["canary", "validation", "verdicts"], "supported_labels": [%s]%s`,
				Provider(p), n+1, p, strings.Join(labels, ", "), more), fmt.Sprintf("nl0%d.example.org", n+1))
		}
	}
	if s.Providers > paused {
		s.Records[zkmodel.PausePathOf(Provider(paused))] = fmt.Sprintf(`{"by": "ann", "reason": "new switches", "since": %d, "until": %d}`, s.Now.Add(-time.Hour).Unix(), s.Now.Add(3*time.Hour).Unix())
	}
}

func (s *Site) component(kind, name, record string, host ...string) {
	of := name + ".example.org"
	if len(host) > 0 {
		of = host[0]
	}
	s.Records[zkmodel.ComponentsRoot+"/"+kind+"/"+name] = fmt.Sprintf(`{"kind": %q, "hostname": %q, %s}`, kind, of, record)
}

// Config is the text of the configuration.
func (s *Site) Config() string {
	var out strings.Builder
	out.WriteString("zookeeper-servers: [{host: zk.example.org}]\nimages-dir: /opt/images\nlabels:\n")
	for n := range s.Images {
		fmt.Fprintf(&out, "  - {name: %s, min-ready: %d}\n", label(n), n%2)
	}
	out.WriteString("  - {name: gpu-large}\ndiskimages:\n")
	for n := range s.Images {
		due := "rebuild-age: 86400"
		if n%3 == 2 {
			due = "rebuild-schedule: '0 3 * * *'"
		}
		switch n {
		case tried:
			due += ", validate: {timeout: 300}"
		case canary:
			due += ", canary: {share: 10%}"
		}
		fmt.Fprintf(&out, "  - {name: %s, elements: [vm, nodepool-base], %s}\n", Image(n), due)
	}
	out.WriteString("providers:\n")
	for p := range s.Providers {
		fmt.Fprintf(&out, "  - name: %s\n    driver: fake\n    diskimages:\n", Provider(p))
		for n := range s.Images {
			fmt.Fprintf(&out, "      - {name: %s}\n", Image(n))
		}
		most := 12 + 10*(p%3)
		if s.Nodes > 100 {
			most = 2 * s.Nodes / max(1, s.Providers)
		}
		fmt.Fprintf(&out, "    pools:\n      - name: main\n        max-servers: %d\n        labels:\n", most)
		for n := range s.Images {
			fmt.Fprintf(&out, "          - {name: %s, diskimage: %s, min-ram: 8192}\n", label(n), Image(n))
		}
	}
	return out.String()
}

// Load reads the configuration, from a file that it makes in a folder.
func (s *Site) Load(folder string) (*configs.Config, error) {
	file := filepath.Join(folder, "nodepool.yaml")
	if err := os.WriteFile(file, []byte(s.Config()), 0o600); err != nil {
		return nil, fmt.Errorf("write configuration of the large site: %w", err)
	}
	return configs.Load(file, configs.Options{})
}
