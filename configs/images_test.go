package configs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestInheritance(t *testing.T) {
	c := load(t, `
zookeeper-servers: [{host: localhost}]
diskimages:
  - name: leaf
    parent: middle
    elements: [leaf]
    env-vars: {B: leaf, C: leaf}
    pause: false
    delete-after-upload: false
    rebuild-jitter: 0
    formats: []
    build-timeout: 0
    metadata: {b: leaf}
  - name: root
    abstract: true
    dib-cmd: sudo disk-image-create
    elements: [vm, root]
    env-vars: {A: root, B: root}
    pause: true
    delete-after-upload: true
    keep-formats: [raw]
    formats: [raw, qcow2]
    rebuild-age: 100
    rebuild-jitter: 50
    build-timeout: 60
    username: root
    metadata: {a: root, b: root}
  - name: middle
    parent: root
    elements: [middle]
    release: 12
    keep-formats: [qcow2]
    rebuild-age: 200
`)
	if len(c.DiskImages) != 2 || c.DiskImages[0].Name != "leaf" || c.DiskImages[1].Name != "middle" {
		t.Fatalf("images %v, want leaf and middle", c.DiskImages)
	}
	want := &DiskImage{
		Name: "leaf", DIBCmd: "sudo disk-image-create", Release: "12",
		Elements: []string{"vm", "root", "middle", "leaf"},
		EnvVars:  EnvVars{"A": "root", "B": "leaf", "C": "leaf"},
		Formats:  []string{}, KeepFormats: []string{"qcow2"},
		RebuildAge: 200 * time.Second, RebuildTimezone: "UTC", KeepBuilds: 2, BuildTimeout: 8 * time.Hour,
		Username: "root", PythonPath: "auto",
		Metadata: map[string]string{"a": "root", "b": "leaf"},
	}
	if diff := cmp.Diff(want, image(t, c, "leaf")); diff != "" {
		t.Errorf("leaf (-want +got):\n%s", diff)
	}
	middle := image(t, c, "middle")
	if !middle.Pause || !middle.DeleteAfterUpload || middle.RebuildJitter != 50 || middle.EnvVars["B"] != "root" {
		t.Errorf("middle %+v was changed by its child", middle)
	}
}

func TestScheduleReplacesAge(t *testing.T) {
	c := load(t, `
zookeeper-servers: [{host: localhost}]
diskimages:
  - {name: nightly, rebuild-schedule: '0 3 * * *'}
  - {name: both, rebuild-schedule: '@daily', rebuild-age: 60}
  - {name: never, rebuild-age: 0}
  - {name: plain}
`)
	for name, want := range map[string]time.Duration{
		"nightly": 0, "both": time.Minute, "never": 0, "plain": 24 * time.Hour,
	} {
		if got := image(t, c, name).RebuildAge; got != want {
			t.Errorf("rebuild age of %s is %v, want %v", name, got, want)
		}
	}
}

func TestArchitectureSpellings(t *testing.T) {
	c := load(t, `
zookeeper-servers: [{host: localhost}]
diskimages:
  - {name: a, architecture: x86_64}
  - {name: b, architecture: aarch64}
  - {name: c, architecture: amd64}
  - {name: d, architecture: riscv64}
`)
	for name, want := range map[string]string{"a": "amd64", "b": "arm64", "c": "amd64", "d": "riscv64"} {
		if got := image(t, c, name).Architecture; got != want {
			t.Errorf("architecture of %s is %q, want %q", name, got, want)
		}
	}
}

// An image is decoded once, however many others it is a parent of.
func TestLongChainOfParents(t *testing.T) {
	const length = mostParents + 1
	var text strings.Builder
	text.WriteString("zookeeper-servers: [{host: localhost}]\ndiskimages:\n")
	for i := length - 1; i > 0; i-- { // children before their parents
		fmt.Fprintf(&text, "  - {name: i%d, parent: i%d, elements: [e%d], env-vars: {A: '%d'}}\n", i, i-1, i, i)
	}
	text.WriteString("  - {name: i0, elements: [e0], rebuild-age: 7}\n")
	decoded := 0
	l := newLoader(Options{Env: alone()})
	l.watch = &observer{known: func(string, string) {}, used: func(kind, key string) {
		if kind == "disk image" && key == "elements" {
			decoded++
		}
	}}
	l.decodeMain("chain.yaml", []byte(text.String()))
	l.finish()
	if err := l.found.err(); err != nil {
		t.Fatal(err)
	}
	last, _ := l.cfg.DiskImage(fmt.Sprintf("i%d", length-1))
	if len(last.Elements) != length || last.Elements[0] != "e0" || last.EnvVars["A"] != fmt.Sprint(length-1) || last.RebuildAge != 7*time.Second {
		t.Errorf("the last has %d elements, %v, %v", len(last.Elements), last.EnvVars, last.RebuildAge)
	}
	if decoded > 2*length {
		t.Errorf("%d mappings were decoded for %d images", decoded, length)
	}
}

// A chain of 20,000 parents, and a circle of 300, are each one error, in any order of the images. The error names file,
// line, image and key. A daemon leaves these images out.
func TestTooManyParents(t *testing.T) {
	for name, c := range map[string]struct {
		length  int
		circle  bool
		reverse bool
		want    string
	}{
		"chain":                 {length: 20000, want: "chain.yaml:104: diskimages[i101]: parent: more than 100 parents, one above the other: i101 -> i100 -> "},
		"chain, children first": {length: 20000, reverse: true, want: "chain.yaml:3: diskimages[i19999]: parent: more than 100 parents"},
		"circle":                {length: 300, circle: true, want: "chain.yaml:3: diskimages[i0]: parent: more than 100 parents"},
	} {
		t.Run(name, func(t *testing.T) {
			lines := make([]string, c.length)
			for i := range lines {
				parent := fmt.Sprintf(", parent: i%d", (i+c.length-1)%c.length)
				if i == 0 && !c.circle {
					parent = ""
				}
				lines[i] = fmt.Sprintf("  - {name: i%d%s, elements: [e], abstract: true}\n", i, parent)
			}
			if c.reverse {
				slices.Reverse(lines)
			}
			l := newLoader(Options{Env: alone(), Validate: true})
			l.decodeMain("chain.yaml", []byte("zookeeper-servers: [{host: localhost}]\ndiskimages:\n"+strings.Join(lines, "")))
			l.finish()
			err := l.found.err()
			if err == nil || strings.Count(err.Error(), "more than") != 1 || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %.300v, want %s", err, c.want)
			}
		})
	}
}
