package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// tool runs commands on a tree of their own.
type tool struct {
	t       *testing.T
	addr    string
	root    string
	file    string // the configuration
	session *recipe.Session
}

// newTool makes a tree, and a configuration of it that goes on with more.
func newTool(t *testing.T, more string) *tool {
	t.Helper()
	u := &tool{t: t, addr: zktest.Shared(t).Addr(), root: zktest.Root(t), file: filepath.Join(t.TempDir(), "nodepool.yaml")}
	host, port, err := net.SplitHostPort(u.addr)
	if err != nil {
		t.Fatal(err)
	}
	yaml := fmt.Sprintf("zookeeper-servers: [{host: %s, port: %s, chroot: %s}]\nimages-dir: %q\n%s", host, port, u.root, t.TempDir(), more)
	if err := os.WriteFile(u.file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := recipe.Dial(recipe.Config{Servers: []string{u.addr}, Chroot: u.root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if u.session, err = client.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	return u
}

// znode writes a znode and its parents.
func (u *tool) znode(at, data string) {
	u.t.Helper()
	err := u.session.EnsurePath(u.t.Context(), path.Dir(at))
	if err == nil {
		_, err = u.session.Create(u.t.Context(), at, []byte(data), recipe.Persistent)
	}
	if err != nil {
		u.t.Fatal(err)
	}
}

// there tells whether there is a znode.
func (u *tool) there(at string) bool {
	u.t.Helper()
	_, there, err := u.session.Known(u.t.Context(), at)
	if err != nil {
		u.t.Fatal(err)
	}
	return there
}

// run runs a command.
func (u *tool) run(args ...string) (code int, stdout, stderr string) {
	u.t.Helper()
	var out, problems strings.Builder
	code = run(context.WithoutCancel(u.t.Context()), append([]string{"-c", u.file}, args...), &out, &problems)
	return code, out.String(), problems.String()
}

// What cannot be read hides nothing else: every listing shows the rest, and marks it.
func TestUnreadableRecordsHideNothing(t *testing.T) {
	u := newTool(t, "diskimages: [{name: alpha, formats: [raw]}, {name: beta, formats: [raw]}]\n")
	const contender = "/0123456789abcdef0123456789abcdef__lock__0000000000"
	for _, image := range []string{"alpha", "beta"} {
		for _, build := range []string{"0000000001", "0000000002"} {
			u.znode(zkmodel.BuildPath(image, build), `{"state": "ready", "state_time": 1, "builder": "b-`+image+build+`"}`)
			for _, provider := range []string{"north", "south"} {
				u.znode(zkmodel.UploadPath(image, build, provider, "0000000007"),
					`{"state": "ready", "state_time": 1, "external_name": "x-`+image+build+provider+`"}`)
			}
		}
	}
	u.znode(zkmodel.RequestBuildPath("alpha"), "")
	for _, id := range []string{"0000000001", "0000000002"} {
		u.znode(zkmodel.NodePath(id), `{"state": "in-use", "state_time": 1, "provider": "north", "comment": "c-`+id+`"}`)
		u.znode(zkmodel.LockPath(zkmodel.NodePath(id))+contender, "")
		u.znode(zkmodel.RequestPath("100-"+id), `{"state": "requested", "requestor": "r-`+id+`", "node_types": ["a"]}`)
		u.znode(zkmodel.ComponentsRoot+"/builder/b"+id, `{"hostname": "b`+id+`", "kind": "builder", "state": "running"}`)
	}
	listings := map[string][]string{ // and what stands in each
		"list --detail": {"c-0000000001", "c-0000000002"}, "list -o json": {"c-0000000001", "c-0000000002"},
		"request-list": {"r-0000000001", "r-0000000002"}, "request-list -o json": {"r-0000000001", "r-0000000002"},
		"dib-image-list": {"b-alpha0000000001", "b-alpha0000000002", "b-beta0000000001", "b-beta0000000002"},
		"image-list": {
			"x-alpha0000000001north", "x-alpha0000000001south", "x-alpha0000000002north", "x-alpha0000000002south",
			"x-beta0000000001north", "x-beta0000000001south", "x-beta0000000002north", "x-beta0000000002south",
		},
		"image-status": {"alpha", "beta"},
		"explain":      {"Image alpha", "Image beta"},
	}
	for part, hides := range map[string]map[string]string{ // what is not to be seen, by listing
		zkmodel.NodePath("0000000001"):                                   {"list --detail": "c-0000000001", "list -o json": "c-0000000001"},
		zkmodel.LockPath(zkmodel.NodePath("0000000001")):                 {},
		zkmodel.RequestPath("100-0000000001"):                            {"request-list": "r-0000000001", "request-list -o json": "r-0000000001"},
		zkmodel.ComponentsRoot + "/builder/b0000000001":                  {},
		zkmodel.ImagePath("alpha"):                                       {"dib-image-list": "b-alpha", "image-list": "x-alpha"},
		zkmodel.BuildsPath("alpha"):                                      {"dib-image-list": "b-alpha", "image-list": "x-alpha"},
		zkmodel.BuildPath("alpha", "0000000001"):                         {"dib-image-list": "b-alpha0000000001", "image-list": "x-alpha0000000001"},
		zkmodel.ProvidersPath("alpha", "0000000001"):                     {"image-list": "x-alpha0000000001"},
		zkmodel.UploadsPath("alpha", "0000000001", "north"):              {"image-list": "x-alpha0000000001north"},
		zkmodel.UploadPath("alpha", "0000000001", "north", "0000000007"): {"image-list": "x-alpha0000000001north"},
	} {
		t.Run(part, func(t *testing.T) {
			u.t = t
			allow := zktest.Forbid(t, u.addr, u.root, part)
			defer allow()
			for listing, shown := range listings {
				code, stdout, stderr := u.run(strings.Fields(listing)...)
				if code != exitDone {
					t.Errorf("%s: exit code %d: %s", listing, code, stderr)
					continue
				}
				for _, text := range shown {
					hidden := hides[listing] != "" && strings.HasPrefix(text, hides[listing])
					if strings.Contains(stdout, text) == hidden {
						t.Errorf("%s: %s in it is %v:\n%s", listing, text, !hidden, stdout)
					}
				}
				if marked := strings.Contains(stdout, "broken"); marked != (hides[listing] != "") {
					t.Errorf("%s: marked is %v:\n%s", listing, marked, stdout)
				}
				if told := strings.Contains(stderr, "cannot be read"); told != (hides[listing] != "") {
					t.Errorf("%s: told on stderr is %v: %s", listing, told, stderr)
				}
			}
			if strings.HasPrefix(part, zkmodel.ImagesRoot) {
				if _, stdout, _ := u.run("explain", "alpha"); !strings.Contains(stdout, "cannot be read") {
					t.Errorf("explain does not say what cannot be read:\n%s", stdout)
				}
			}
		})
	}
}
