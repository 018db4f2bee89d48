package main

import (
	"path"
	"strings"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// Nothing is erased while a daemon of either make serves the provider, or may, or a user
// needs one of its nodes or uploads; a question that is skipped changes nothing of that.
func TestEraseRefuses(t *testing.T) {
	const (
		contender = "/0123456789abcdef0123456789abcdef__lock__0000000000"
		idle      = `{"state": "ready", "provider": "gone", "external_id": "vm", "state_time": 1}`
	)
	upload := zkmodel.UploadPath("image", "0000000001", "gone", "0000000001")
	for name, test := range map[string]struct {
		at, data string // what is in the way
		says     string // "" is that nothing is
	}{
		"nothing": {},
		"pool of Nodepool": {
			zkmodel.ComponentsRoot + "/pool/np0000000001",
			`{"hostname": "np", "id": "np-gone-main-0", "kind": "pool", "model_api": 0, "name": "main", "priority": 100, "provider_name": "gone", "state": "running", "supported_labels": ["a"], "version": "11.0.0"}`,
			"pool main of the launcher on np",
		},
		"pool of another provider": {
			zkmodel.ComponentsRoot + "/pool/np0000000001", `{"hostname": "np", "kind": "pool", "name": "main", "provider_name": "stays", "state": "running"}`, "",
		},
		"launcher without a pool": {
			zkmodel.ComponentsRoot + "/launcher/pk0000000001", `{"hostname": "pk", "kind": "launcher", "providers": ["gone"], "state": "running"}`, "the launcher on pk",
		},
		"launcher of Nodepool": {
			zkmodel.ComponentsRoot + "/launcher/np0000000001", `{"hostname": "np", "kind": "launcher", "model_api": 0, "state": "running", "version": "11.0.0"}`, "",
		},
		"builder": {
			zkmodel.ComponentsRoot + "/builder/pk0000000001", `{"hostname": "pk", "kind": "builder", "providers": ["stays", "gone"], "state": "running"}`, "the builder on pk",
		},
		"builder of other providers": {
			zkmodel.ComponentsRoot + "/builder/pk0000000001", `{"hostname": "pk", "kind": "builder", "providers": ["stays"], "state": "running"}`, "",
		},
		"builder of no provider": {
			zkmodel.ComponentsRoot + "/builder/pk0000000001", `{"hostname": "pk", "kind": "builder", "providers": [], "state": "running"}`, "",
		},
		"builder of Nodepool": {
			zkmodel.ComponentsRoot + "/builder/np0000000001", `{"hostname": "np", "kind": "builder", "model_api": 0, "state": "running", "version": "11.0.0"}`,
			"the builder on np, which does not say",
		},
		"a component that says nothing": {zkmodel.ComponentsRoot + "/builder/x", "", "nobody can tell what it serves"},
		"a node in use":                 {zkmodel.NodePath("0000000002"), `{"state": "in-use", "provider": "gone"}`, "node 0000000002 is in-use"},
		"a node on hold":                {zkmodel.NodePath("0000000002"), `{"state": "hold", "provider": "gone"}`, "node 0000000002 is hold"},
		"a node of another in use":      {zkmodel.NodePath("0000000002"), `{"state": "in-use", "provider": "stays"}`, ""},
		"a node that is locked":         {zkmodel.LockPath(zkmodel.NodePath("0000000001")) + contender, "", "node 0000000001 is locked"},
		"a node that is given":          {zkmodel.RequestPath("100-0000000001"), `{"state": "fulfilled", "nodes": ["0000000003"]}`, "node 0000000003 is given to request 100-0000000001"},
		"an upload under way":           {path.Dir(upload) + "/lock" + contender, "", "a builder uploads build image-0000000001"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newTool(t, "")
			u.znode(zkmodel.BuildPath("image", "0000000001"), `{"state": "ready"}`)
			u.znode(upload, `{"state": "ready", "external_id": "img"}`)
			u.znode(zkmodel.NodePath("0000000001"), idle)
			u.znode(zkmodel.NodePath("0000000003"), `{"state": "ready", "provider": "gone", "allocated_to": "100-0000000001", "state_time": 1}`)
			if test.at != "" {
				u.znode(test.at, test.data)
			}
			code, stdout, stderr := u.run("erase", "--force", "gone")
			if (code == exitDone) != (test.says == "") || !strings.Contains(stderr, test.says) {
				t.Errorf("exit code %d, want it to say %q: %s%s", code, test.says, stdout, stderr)
			}
			for _, at := range []string{upload, zkmodel.NodePath("0000000001"), zkmodel.NodePath("0000000003")} {
				if u.there(at) == (test.says == "") {
					t.Errorf("%s is there: %v", at, u.there(at))
				}
			}
			if test.says != "" && u.there(zkmodel.LockPath(zkmodel.NodePath("0000000003"))+contender) {
				t.Error("a lock is left")
			}
		})
	}
}

// Where part of what a provider has cannot be read, nobody can say what leaks.
func TestEraseOfWhatCannotBeRead(t *testing.T) {
	upload := zkmodel.UploadPath("image", "0000000001", "gone", "0000000001")
	for _, part := range []string{upload, path.Dir(upload), zkmodel.ProvidersPath("image", "0000000001"), zkmodel.BuildsPath("image")} {
		t.Run(part, func(t *testing.T) {
			u := newTool(t, "")
			u.znode(zkmodel.BuildPath("image", "0000000001"), `{"state": "ready"}`)
			u.znode(upload, `{"state": "ready", "external_id": "img"}`)
			u.znode(zkmodel.NodePath("0000000001"), `{"state": "ready", "provider": "gone", "state_time": 1}`)
			defer zktest.Forbid(t, u.addr, u.root, part)()
			code, stdout, stderr := u.run("erase", "--force", "gone")
			if code != exitFailed || !strings.Contains(stderr, "not readable") {
				t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
			if !u.there(upload) || !u.there(zkmodel.NodePath("0000000001")) {
				t.Error("something was erased")
			}
		})
	}
}
