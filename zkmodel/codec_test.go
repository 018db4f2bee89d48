package zkmodel

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/zkmodel/recipe"
)

// What a running Nodepool wrote, taken from its tree.
const (
	wireBuild   = `{"state": "ready", "state_time": 1795161248.9740624, "builder": "localhost", "builder_id": "47d8aaa0-0180-449c-9d8f-4155b7fbb43a", "formats": "qcow2", "username": "zuul", "python_path": "auto", "shell_type": null}`
	wireUpload  = `{"state": "ready", "state_time": 1795161252.5239441, "external_id": "39fd43df805b45489ed5980be10d6eeb", "external_name": "image-000-1795161252", "format": "qcow2", "username": "zuul", "python_path": "auto", "shell_type": null}`
	wireRequest = `{"state": "fulfilled", "state_time": 1795159594.6035016, "declined_by": [], "node_types": ["label-0", "label-1"], "nodes": ["0000000000", "0000000001"], "reuse": false, "requestor": "snap", "requestor_data": null, "provider": null, "relative_priority": 0, "event_id": "be789a9534144df09b52603b34ac7585", "created_time": 1795159589.8780725, "tenant_name": "tenant-one"}`
	wireNode    = `{"state": "building", "state_time": 1795159590.5883458, "cloud": null, "provider": "fake-provider-1", "pool": "main", "type": ["label-0"], "allocated_to": "100-0000000000", "az": null, "region": null, "public_ipv4": null, "private_ipv4": null, "public_ipv6": null, "host_id": null, "interface_ip": null, "connection_port": 22, "ssh_port": 22, "image_id": "/nodepool/images/image-000/builds/1a64bee6fa5446a9b04ed29e483b2589/providers/fake-provider-1/images/0000000001", "launcher": "localhost-PoolWorker.fake-provider-1-main-638c9a23a22b4e7da5d84025d42f8a83", "created_time": 1795159590.5796194, "external_id": null, "hostname": null, "comment": null, "user_data": null, "hold_job": null, "host_keys": [], "username": "zuul", "connection_type": "ssh", "shell_type": null, "hold_expiration": null, "resources": {"cores": 4, "instances": 1, "ram": 8192}, "slot": null, "attributes": null, "python_path": "auto", "tenant_name": "tenant-one", "driver_data": null, "requestor": "snap"}`
)

// encoder is what all records can do.
type encoder interface{ Encode() ([]byte, error) }

func decoders() map[string]func(data []byte) (encoder, error) {
	var stat recipe.Stat
	return map[string]func([]byte) (encoder, error){
		"build": func(d []byte) (encoder, error) { b := DecodeBuild("i", "1", d, stat); return b, b.Broken },
		"upload": func(d []byte) (encoder, error) {
			u := DecodeUpload(UploadKey{"i", "1", "p", "2"}, d, stat)
			return u, u.Broken
		},
		"request":   func(d []byte) (encoder, error) { r := DecodeRequest("100-1", d, stat); return r, r.Broken },
		"node":      func(d []byte) (encoder, error) { n := DecodeNode("1", d, stat); return n, n.Broken },
		"component": func(d []byte) (encoder, error) { c := DecodeComponent("1", d); return c, c.Broken },
	}
}

// A record of Nodepool's that we read and write again has not changed by a byte.
func TestRewriteIsByteForByteNodepools(t *testing.T) {
	for kind, text := range map[string]string{
		"build": wireBuild, "upload": wireUpload, "request": wireRequest, "node": wireNode,
		"component": `{"hostname": "vm", "kind": "builder", "model_api": 0, "state": "stopped", "version": "11.0.0 None"}`,
	} {
		t.Run(kind, func(t *testing.T) {
			r, broken := decoders()[kind]([]byte(text))
			if broken != nil {
				t.Fatal(broken)
			}
			got, err := r.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text, string(got)); diff != "" {
				t.Errorf("rewritten (-read +written):\n%s", diff)
			}
		})
	}
}

func TestForeignKeysSurviveARewrite(t *testing.T) {
	text := `{"state": "melting", "state_time": 1.5, "formats": ["odd"], "zebra": {"b": [1, 2.50, "x, y: z"]}, "über": "ß\n😀"}`
	b := DecodeBuild("i", "1", []byte(text), recipe.Stat{})
	if b.Broken != nil || b.State != "melting" || b.State.Known() {
		t.Fatalf("broken %v, state %q", b.Broken, b.State)
	}
	b.Reason = "because"
	out, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"state": "melting"`, `"formats": ["odd"]`, `"reason": "because"`,
		`"zebra": {"b": [1, 2.50, "x, y: z"]}`, `"\u00fcber": "\u00df\n\ud83d\ude00"`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is not in %s", want, out)
		}
	}
	b.Formats = Formats{"qcow2", "raw"}
	if out, _ = b.Encode(); !strings.Contains(string(out), `"formats": "qcow2,raw"`) {
		t.Errorf("a value of ours must replace an odd one: %s", out)
	}
}

func TestDefaultsOfMissingKeys(t *testing.T) {
	b := DecodeBuild("i", "1", []byte(`{"state": "ready"}`), recipe.Stat{})
	if b.Username != "zuul" || b.PythonPath != "/usr/bin/python2" {
		t.Errorf("build without keys: %q, %q", b.Username, b.PythonPath)
	}
	b = DecodeBuild("i", "1", []byte(`{"username": null}`), recipe.Stat{})
	if b.Username != "" {
		t.Errorf("null is no default: %q", b.Username)
	}
	n := DecodeNode("1", []byte(`{"type": "label", "ssh_port": 2222, "hold_expiration": "60"}`), recipe.Stat{})
	if port, _ := n.ConnectionPort.Int(); port != 2222 || n.HoldExpiration != 60 || !cmp.Equal(n.Type, Strings{"label"}) {
		t.Errorf("old node: %+v", n)
	}
	if r := DecodeRequest("100-1", []byte(`{}`), recipe.Stat{}); !r.Reuse {
		t.Error("reuse is true by default")
	}
}

func TestBrokenRecordsAreListedNotFatal(t *testing.T) {
	for _, data := range []string{"", "null", "[]", "42", `"x"`, "{", "\xff\xfe", strings.Repeat("[", 20000)} {
		for kind, dec := range decoders() {
			if _, broken := dec([]byte(data)); broken == nil {
				t.Errorf("%s from %.20q: want it broken", kind, data)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{wireBuild, wireUpload, wireRequest, wireNode, "", "null", `{"state": 5, "type": {}}`, "{\"a\": \"\xff\"}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for kind, dec := range decoders() {
			r, broken := dec(data)
			if broken != nil {
				continue
			}
			once, err := r.Encode()
			if err != nil {
				t.Fatalf("%s: encode what was decoded: %v", kind, err)
			}
			if !json.Valid(once) || !utf8.Valid(once) {
				t.Fatalf("%s: wrote %q", kind, once)
			}
			again, broken := dec(once)
			if broken != nil {
				t.Fatalf("%s: read what was written: %v", kind, broken)
			}
			if twice, _ := again.Encode(); string(once) != string(twice) {
				t.Fatalf("%s: not stable:\n%s\n%s", kind, once, twice)
			}
		}
	})
}
