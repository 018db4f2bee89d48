package yamltext

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// site has what files have: remarks, both styles, anchors, blocks, variables, blanks at ends.
const site = `# a remark
zookeeper-servers: [{host: one, port: %(NODEPOOL_PORT)}]   # behind it
zookeeper-auth:
  user: me
  password: 'it''s'

diskimages:
  - name: debian   # the first
    env-vars:
      ONE: plain words
      TWO: &two "in \"quotes\""
      THREE: |
        a block
          of lines

    pause: false
  - {name: "ubuntu: 22", env-vars: {A: b, C: }}
  - name: empty
    env-vars:
  - elements: [x, 'y z']
labels: []
other: *two
`

func parse(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Each value has a path of its own, a variable none: it is not known what it is.
func TestScalars(t *testing.T) {
	var got []string
	for _, s := range parse(t, site).Scalars() {
		got = append(got, s.Path.String())
	}
	want := []string{
		"zookeeper-servers[0].host", "zookeeper-auth.user", "zookeeper-auth.password",
		"diskimages[debian].name", "diskimages[debian].env-vars.ONE", "diskimages[debian].env-vars.TWO",
		"diskimages[debian].env-vars.THREE", "diskimages[debian].pause",
		`diskimages[ubuntu: 22].name`, `diskimages[ubuntu: 22].env-vars.A`, `diskimages[ubuntu: 22].env-vars.C`,
		"diskimages[empty].name", "diskimages[empty].env-vars", "diskimages[3].elements[0]", "diskimages[3].elements[1]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What is put where something is, or is not, changes no other byte of the file.
func TestPut(t *testing.T) {
	for path, change := range map[string][2]string{ // old text, new text
		"zookeeper-auth.password":              {`'it''s'`, "NEW"},
		"diskimages[debian].env-vars.ONE":      {"plain words", "NEW"},
		"diskimages[debian].env-vars.TWO":      {`"in \"quotes\""`, `"NEW"`},
		"diskimages[debian].env-vars.THREE":    {"|\n        a block\n          of lines", "NEW"},
		"diskimages[debian].env-vars.FOUR":     {"of lines\n", "of lines\n      FOUR: NEW\n"},
		"diskimages[debian].env-vars.no":       {"of lines\n", "of lines\n      \"no\": NEW\n"},
		"diskimages[ubuntu: 22].env-vars.A":    {"A: b", "A: NEW"},
		"diskimages[ubuntu: 22].env-vars.C":    {"C: }", "C: NEW}"},
		"diskimages[ubuntu: 22].env-vars.B":    {"C: }", "C: , B: NEW}"},
		"diskimages[empty].env-vars.X":         {"empty\n    env-vars:", "empty\n    env-vars: {X: NEW}"},
		"diskimages[3].elements[1]":            {"'y z'", "NEW"},
		"diskimages[3].env-vars.X":             {"'y z']\n", "'y z']\n    env-vars:\n      X: NEW\n"},
		"diskimages[fresh].env-vars.X":         {"'y z']\n", "'y z']\n  - name: fresh\n    env-vars:\n      X: NEW\n"},
		"labels[a].x":                          {"labels: []", "labels: [{name: a, x: NEW}]"},
		"webapp.token":                         {"other: *two\n", "other: *two\nwebapp:\n  token: NEW\n"},
		"zookeeper-servers[0].chroot":          {"port: %(NODEPOOL_PORT)}", "port: %(NODEPOOL_PORT), chroot: NEW}"},
		`clouds."a.b".auth."pass word"`:        {"other: *two\n", "other: *two\nclouds:\n  \"a.b\":\n    auth:\n      \"pass word\": NEW\n"},
		"zookeeper-auth.more":                  {"'it''s'\n", "'it''s'\n  more: NEW\n"},
		"diskimages[debian].metadata.deep.key": {"pause: false\n", "pause: false\n    metadata:\n      deep:\n        key: NEW\n"},
	} {
		for _, crlf := range []bool{false, true} {
			text, want := site, strings.Replace(site, change[0], change[1], 1)
			if crlf {
				text, want = "\xef\xbb\xbf"+strings.ReplaceAll(text, "\n", "\r\n"), "\xef\xbb\xbf"+strings.ReplaceAll(want, "\n", "\r\n")
			}
			p, err := ParsePath(path)
			if err != nil {
				t.Error(err)
				continue
			}
			got, line, _, err := parse(t, text).Put(p, "NEW")
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("%s:\n%s", path, diff)
			}
			if !strings.Contains(strings.Split(string(got), "\n")[line-1], "NEW") {
				t.Errorf("%s: told line %d", path, line)
			}
		}
	}
}

// An empty file becomes one, and JSON stays JSON.
func TestPutElsewhere(t *testing.T) {
	for _, c := range [][3]string{
		{"", "a.b", "a:\n  b: NEW\n"},
		{"# nothing", "a[x].b", "# nothing\na:\n  - name: x\n    b: NEW\n"},
		{`{"clouds": {"x": {"auth": {"password": "old"}}}}`, "clouds.x.auth.password", `{"clouds": {"x": {"auth": {"password": "NEW"}}}}`},
		{`{"clouds": {"x": {}}}`, "clouds.x.auth.password", `{"clouds": {"x": {"auth": {"password": "NEW"}}}}`},
		{`{"a": {"b": null, "c": true, "d": 7}}`, "a.b", `{"a": {"b": "NEW", "c": true, "d": 7}}`},
		{"{\n  \"a\": {\"b\": \"c\"}\n}\n", "a.n", "{\n  \"a\": {\"b\": \"c\", \"n\": \"NEW\"}\n}\n"},
		{`{"a": {"b": "%(NODEPOOL_X)"}}`, "a.b", `{"a": {"b": "NEW"}}`},
		{"a:\n  b: %(NODEPOOL_X) # filled in\n  c: d\n", "a.b", "a:\n  b: NEW # filled in\n  c: d\n"},
		{"a: '%(NODEPOOL_X)'\nc: \"x %(NODEPOOL_Y) y\"\n", "c", "a: '%(NODEPOOL_X)'\nc: \"NEW\"\n"},
		{"a: {b: %(NODEPOOL_X), c: d}\n", "a.b", "a: {b: NEW, c: d}\n"},
		{"a:\r\n- name: x\r\n", "a[z2].b", "a:\r\n- name: x\r\n- name: z2\r\n  b: NEW\r\n"},
		{"a: b", "c.d", "a: b\nc:\n  d: NEW"},
		{`{"a": []}`, "a[x].b", `{"a": [{"name": "x", "b": "NEW"}]}`},
		{"a: [\n  {name: x, # why\n   b: {}},\n]\n", "a[x].b.c", "a: [\n  {name: x, # why\n   b: {c: NEW}},\n]\n"},
		{"a:\n- name: x\n  b: |\n    text\n  c: d\n- name: y\n", "a[x].b", "a:\n- name: x\n  b: NEW\n  c: d\n- name: y\n"},
		{"a:\n- |\n  text\n- b\n", "a[0]", "a:\n- NEW\n- b\n"},
		{"a:\n- name: x\n", "a[z2].b", "a:\n- name: x\n- name: z2\n  b: NEW\n"},
		{"a: !!str &x old # why\n", "a", "a: !!str &x NEW # why\n"},
		{"ä: {ö: ü, b: c}\n", "\"ä\".b", "ä: {ö: ü, b: NEW}\n"},
	} {
		p, err := ParsePath(c[1])
		if err != nil {
			t.Error(err)
			continue
		}
		got, _, _, err := parse(t, c[0]).Put(p, "NEW")
		if err != nil || string(got) != c[2] {
			t.Errorf("%q, %s: %q, %v, want %q", c[0], c[1], got, err, c[2])
		}
	}
}

// What cannot be changed without guessing is refused, and says where.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		text, path string
		want       error
		says       string
	}{
		{"a: [{name: x, b: 1}, {name: x, b: 2}]", "a[x].b", ErrTwice, "line 1: a[x].b"},
		{"a: two\n  lines\n", "a", ErrShape, "line 1: a"},
		{"a: text\n", "a.b", ErrShape, "line 1: a"},
		{"a: {b: c}\n", "a", ErrShape, "line 1: a"},
		{"a: [x]\n", "a[7]", ErrPath, "it ends with a key"},
		{"a: [x]\n", "a[7].b", ErrNotFound, "line 1: a"},
		{"a: %(NODEPOOL_X)\nb: 1\na: 2\n", "a", ErrTwice, "line"},
		{"x: &x {b: c}\na: *x\n", "a.b", ErrShape, "line"},
	} {
		p, err := ParsePath(c.path)
		if err != nil {
			t.Error(err)
			continue
		}
		text, _, _, err := parse(t, c.text).Put(p, "NEW")
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || text != nil {
			t.Errorf("%q, %s: %q, %v, want %v", c.text, c.path, text, err, c.want)
		}
	}
	for _, text := range []string{"a: [hunter2", "a: 1\n---\nb: 2\n", "hunter2: *hunter2\n"} {
		if _, err := Parse([]byte(text)); !errors.Is(err, ErrSyntax) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Parse(%q) = %v", text, err)
		}
	}
}

// A path as text is the path, whatever names are in it: else a value could be moved to a
// place that only looks like its own.
func TestPathsAreUnique(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func() Path {
			p := Path{}.Key(rapid.StringMatching(`[a-z.\[\]"0-9 ]{1,4}`).Draw(t, "first"))
			for range rapid.IntRange(0, 3).Draw(t, "steps") {
				name := rapid.StringMatching(`[a-z.\[\]"0-9= ]{0,4}`).Draw(t, "name")
				if rapid.Bool().Draw(t, "item") {
					p = p.Item(name, rapid.IntRange(0, 20).Draw(t, "at"))
				} else {
					p = p.Key(name)
				}
			}
			return p
		}
		one, two := draw(), draw()
		if got, err := ParsePath(one.String()); err != nil || !cmp.Equal(got, one) {
			t.Fatalf("%q is read as %v, %v, was %v", one.String(), got, err, one)
		}
		if one.String() == two.String() && !cmp.Equal(one, two) {
			t.Fatalf("%v and %v are both %q", one, two, one.String())
		}
	})
	for _, text := range []string{"", "a.", ".a", "a..b", "[x]", "a[", `a["x]`, "a b", "a[]"} {
		if p, err := ParsePath(text); !errors.Is(err, ErrPath) {
			t.Errorf("ParsePath(%q) = %v, %v", text, p, err)
		}
	}
}
