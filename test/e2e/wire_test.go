package e2e

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// kind is one line of the path map (docs/wire.md §2).
type kind struct {
	path      string // a pattern
	ephemeral bool
	keys      map[string]string // of the record, with their JSON types; nil means empty data
}

// The types of JSON values; "?" adds null.
const (
	text   = "string"
	number = "float64"
	list   = "[]interface {}"
	object = "map[string]interface {}"
	truth  = "bool"
)

// build, upload, node and component are the records of docs/wire.md §3, with the
// keys that Nodepool writes.
var (
	build = map[string]string{
		"state": text, "state_time": number, "builder": text, "builder_id": text, "formats": text,
		"username": text + "?", "python_path": text + "?", "shell_type": text + "?",
	}
	upload = map[string]string{
		"state": text, "state_time": number, "external_id": text + "?", "external_name": text + "?",
		"format": text + "?", "username": text + "?", "python_path": text + "?", "shell_type": text + "?",
	}
	node = map[string]string{
		"state": text, "state_time": number, "created_time": number, "cloud": text + "?", "provider": text,
		"pool": text, "az": text + "?", "region": text + "?", "type": list, "allocated_to": text + "?",
		"public_ipv4": text + "?", "private_ipv4": text + "?", "public_ipv6": text + "?", "interface_ip": text + "?",
		"host_id": text + "?", "connection_port": number, "ssh_port": number, "connection_type": text,
		"shell_type": text + "?", "python_path": text + "?", "image_id": text, "launcher": text,
		"external_id": text + "?", "hostname": text + "?", "comment": text + "?", "user_data": object + "?",
		"hold_job": text + "?", "host_keys": list, "username": text, "hold_expiration": number + "?",
		"resources": object, "slot": number + "?", "attributes": object + "?", "tenant_name": text + "?",
		"requestor": text + "?", "driver_data": object + "?",
	}
	component = map[string]string{
		"hostname": text, "state": text, "kind": text, "version": text, "model_api": number,
	}
	pool = map[string]string{
		"hostname": text, "state": text, "kind": text, "version": text, "model_api": number, "id": text,
		"name": text, "provider_name": text, "supported_labels": list, "priority": number, "paused": truth,
	}
)

const (
	name      = `[^/]+`
	sequence  = `\d{10}`
	contender = `[0-9a-f]{32}__lock__\d{10}`
)

// kinds is the path map (docs/wire.md §2), as far as a tree may hold it while images are
// built and nodes are used.
var kinds = []kind{
	{path: `/nodepool`},
	{path: `/nodepool/(images|nodes|requests|requests-lock|components)`},
	{path: `/nodepool/images/` + name},
	{path: `/nodepool/images/` + name + `/(builds|pause|request-build)`},
	{path: `/nodepool/images/` + name + `/builds/` + sequence, keys: build},
	{path: `/nodepool/images/` + name + `/builds(/` + sequence + `)?/lock`},
	{path: `/nodepool/images/` + name + `/builds(/` + sequence + `)?/lock/` + contender, ephemeral: true},
	{path: `/nodepool/images/` + name + `/builds/` + sequence + `/providers(/` + name + `(/images)?)?`},
	{path: `/nodepool/images/` + name + `/builds/` + sequence + `/providers/` + name + `/images(/` + sequence + `)?/lock`},
	{path: `/nodepool/images/` + name + `/builds/` + sequence + `/providers/` + name + `/images(/` + sequence + `)?/lock/` + contender, ephemeral: true},
	{path: `/nodepool/images/` + name + `/builds/` + sequence + `/providers/` + name + `/images/` + sequence, keys: upload},
	{path: `/nodepool/nodes/` + sequence, keys: node},
	{path: `/nodepool/nodes/` + sequence + `/lock`},
	{path: `/nodepool/requests-lock/\d+-` + sequence},
	{path: `/nodepool/requests-lock/\d+-` + sequence + `/` + contender, ephemeral: true},
	{path: `/nodepool/components/(builder|launcher|pool)`},
	{path: `/nodepool/components/(builder|launcher)/[^/.]+` + sequence, ephemeral: true, keys: component},
	{path: `/nodepool/components/pool/[^/.]+` + sequence, ephemeral: true, keys: pool},
}

// checkWire checks that every znode has a place in docs/wire.md §2, and every
// record the keys of §3 there with values of their types.
func checkWire(t *testing.T, tree []znode) {
	t.Helper()
	seen := map[string]int{}
	for _, z := range tree {
		if regexp.MustCompile(`^/nodepool/nodes/` + sequence + `/lock/` + contender + `$`).MatchString(z.Path) {
			continue // its data names the holder, as the holder likes
		}
		i := slices.IndexFunc(kinds, func(k kind) bool {
			return regexp.MustCompile(`^` + k.path + `$`).MatchString(z.Path)
		})
		if i < 0 {
			t.Errorf("%s is not in docs/wire.md §2", z.Path)
			continue
		}
		k := kinds[i]
		seen[k.path]++
		if z.Ephemeral != k.ephemeral {
			t.Errorf("%s: ephemeral %t, want %t", z.Path, z.Ephemeral, k.ephemeral)
		}
		if k.keys == nil {
			if z.Data != "" {
				t.Errorf("%s holds %q, want nothing", z.Path, z.Data)
			}
			continue
		}
		checkRecord(t, z, k.keys)
	}
	for _, k := range kinds {
		if reflect.DeepEqual(k.keys, component) && seen[k.path] < 2 {
			t.Errorf("%d components, want a builder and a launcher", seen[k.path])
		}
	}
}

func checkRecord(t *testing.T, z znode, keys map[string]string) {
	t.Helper()
	record := z.record(t)
	for key, want := range keys {
		value, ok := record[key]
		if !ok {
			t.Errorf("%s: no key %s in %s", z.Path, key, z.Data)
			continue
		}
		kind := fmt.Sprintf("%T", value)
		if bare, optional := strings.CutSuffix(want, "?"); kind != bare && (value != nil || !optional) {
			t.Errorf("%s: %s is %s, want %s", z.Path, key, kind, want)
		}
	}
}
