package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	shown "poolkeeper/test/pages"
	"poolkeeper/test/records"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// rollbackSite is a tree with two images, three builds each, in two providers, and its
// configuration.
func rollbackSite(t *testing.T) (config string, store *zkmodel.Store) {
	t.Helper()
	host, port, err := net.SplitHostPort(zktest.Shared(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	root := zktest.Root(t)
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store = zkmodel.NewStore(session, nil)
	for _, image := range []string{"debian-12", "fedora"} {
		for range 3 {
			err = errors.Join(err, records.BuiltAndUploaded(t.Context(), store, image, "north", "south"))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	const provider = "{name: %s, driver: fake, diskimages: [{name: debian-12}, {name: fedora}]}"
	text := fmt.Sprintf("zookeeper-servers: [{host: %s, port: %s, chroot: %s}]\nimages-dir: %s\ndiskimages: [{name: debian-12, elements: [debian]}, {name: fedora, elements: [fedora]}]\nproviders: ["+
		provider+", "+provider+"]\n", host, port, root, t.TempDir(), "north", "south")
	config = filepath.Join(t.TempDir(), "nodepool.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config, store
}

// The commands of docs/rollback.md, one after the other, as they stand there, print what
// the page says that they print. Mistake: a page that shows what no command says.
func TestRollbackPage(t *testing.T) {
	config, store := rollbackSite(t)
	blocks, err := shown.Read("../../docs/rollback.md")
	if err != nil {
		t.Fatal(err)
	}
	if ran := printsAsShown(t, config, blocks); ran != 5 {
		t.Errorf("%d commands ran", ran)
	}
	other, err := store.Image(t.Context(), "fedora")
	if err != nil || other.Verdicts != nil {
		t.Errorf("the other image: %+v %v", other.Verdicts, err)
	}
	if code := run(t.Context(), []string{"-c", config, "image-rollback", "fedora", "--pin"}, io.Discard, io.Discard); code != 0 {
		t.Errorf("exit %d", code)
	}
	// What the listings and explain show of it.
	for command, want := range map[string]string{
		"image-list --detail":     `0000000001 \| \d+ \| south +\| debian-12 .*\| rejected by \S+: old kernel`,
		"explain --all debian-12": `upload 0000000001/south/0000000001 +verdict +no +no node boots from it: its build was rejected by \S+: old kernel`,
		"image-status --detail":   `\| fedora +\|.*build 0000000002 is pinned by \S+ at north; build 0000000002 is pinned by \S+ at south`,
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"-c", config}, wordsOfLine(t, command)...), &stdout, &stderr)
		if code != 0 || !regexp.MustCompile(want).MatchString(stdout.String()) {
			t.Errorf("%s: exit %d, no %s\n%s%s", command, code, want, &stdout, &stderr)
		}
	}
}

// What cannot be done is said, exits with an error, and changes nothing.
func TestRollbackRefuses(t *testing.T) {
	config, store := rollbackSite(t)
	for line, want := range map[string]string{
		"image-rollback nowhere":                            `nowhere: not found; these are: debian-12`,
		"image-rollback debian-12 --provider west":          "no build of image debian-12 serves in west",
		"image-rollback debian-12 --build 0000000009":       "build debian-12-0000000009: not found",
		"image-rollback debian-12 --release":                "image debian-12 is not pinned there: not found",
		"image-rollback debian-12 --release --pin":          "--release goes with --provider alone",
		"image-rollback ../x":                               `image "../x" contains '/'`,
		"image-rollback debian-12 --provider a/b":           "provider",
		"image-reject debian":                               "want IMAGE-BUILDID",
		"image-reject debian-12-0000000009":                 "build debian-12-0000000009: not found",
		"image-promote debian-12-0000000003":                "neither rolled back nor rejected",
		"image-promote debian-12-0000000003 --provider a/b": "provider",
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), append([]string{"-c", config}, wordsOfLine(t, line)...), &stdout, &stderr); code == 0 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit %d: %s, want %s", line, code, &stderr, want)
		}
	}
	i, err := store.Image(t.Context(), "debian-12")
	if err != nil || i.Verdicts != nil {
		t.Errorf("%+v %v", i.Verdicts, err)
	}
	for _, u := range i.Builds[2].Uploads {
		if u.Suspect != "" || u.State != zkmodel.UploadReady {
			t.Errorf("%+v", u)
		}
	}
}

// printsAsShown runs the commands of a page's console blocks as they stand there, one after
// the other, compares what they print with what the page says, and counts them.
func printsAsShown(t *testing.T, config string, blocks []shown.Block) (ran int) {
	t.Helper()
	for _, b := range blocks {
		if b.Lang != "console" {
			continue
		}
		for _, part := range strings.Split(b.Text, "$ poolkeeper ")[1:] {
			line, want, _ := strings.Cut(part, "\n")
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), append([]string{"-c", config}, wordsOfLine(t, line)...), &stdout, &stderr); code != 0 || stderr.Len() > 0 {
				t.Fatalf("%s: exit %d: %s", line, code, &stderr)
			}
			if got := stdout.String(); got != want {
				t.Errorf("%s prints\n%sthe page says\n%s", line, got, want)
			}
			ran++
		}
	}
	return ran
}
