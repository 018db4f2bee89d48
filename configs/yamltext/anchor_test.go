package yamltext

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const anchors = `
clouds:
  one: &one {auth: {username: u, password: p}, region_name: r1}
  two: {<<: *one, region_name: r2}
  three: &three
    auth: &auth
      username: u
      password: p
  four:
    <<: [*three]
    x: y
  five: {<<: *three, auth: {<<: *auth, password: own}}
  six: *three
  seven: {auth: *auth, x: &pw w, y: *pw}
`

// A mapping that is added beside a merge would hide all that is merged of its name: a cloud lost
// its user and its address that way. It is refused, and the message says what to write; with
// that, the value can be put.
func TestMergedIsNotHidden(t *testing.T) {
	for path, want := range map[string]string{
		"clouds.two.auth.password":     "line 4: clouds.two: cannot be changed in its place: auth is merged from line 3, and one of its own would hide all of that: give auth in line 3 an anchor (&NAME), write auth: {<<: *NAME, password: } there, and try again",
		"clouds.four.auth.password":    "line 10: clouds.four: cannot be changed in its place: auth is merged from line 6, and one of its own would hide all of that: write auth: {<<: *auth, password: } there, and try again",
		"clouds.four.auth.deep.key":    "line 10: clouds.four: cannot be changed in its place: auth is merged from line 6, and one of its own would hide all of that: write auth with all that it shall hold there, and try again",
		"clouds.six.auth.password":     "line 13: clouds.six: cannot be changed in its place: an alias stands there: write all that it shall hold in its place, and try again",
		"clouds.seven.auth.password":   "line 14: clouds.seven.auth: cannot be changed in its place: an alias stands there: write {<<: *auth, password: } in its place, and try again",
		"clouds.seven.y":               "line 14: clouds.seven.y: cannot be changed in its place: an alias stands there: write an empty value in its place, and try again",
		"clouds.two.region_name":       "",
		"clouds.four.fresh.password":   "",
		"clouds.five.auth.password":    "",
		"clouds.five.auth.user_domain": "",
		"clouds.three.auth.more":       "",
	} {
		p, err := ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		text, _, _, err := parse(t, anchors).Put(p, "NEW")
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", path, err)
		case want != "" && (!errors.Is(err, ErrShape) || err.Error() != want || text != nil):
			t.Errorf("%s:\n %v, want\n %s", path, err, want)
		}
	}
	told := strings.Replace(anchors, "    x: y\n", "    x: y\n    auth: {<<: *auth, password: }\n", 1)
	p := Path{}.Key("clouds").Key("four").Key("auth").Key("password")
	if text, _, _, err := parse(t, told).Put(p, "NEW"); err != nil || !strings.Contains(string(text), "auth: {<<: *auth, password: NEW}") {
		t.Errorf("as the message says: %v", err)
	}
}

// Where an anchor takes a value is told: it opens at its own place alone, and the cloud that
// merged it lost its password without a word.
func TestUses(t *testing.T) {
	for path, want := range map[string][]string{
		"clouds.one.auth.password":   {"clouds.two.auth.password"},
		"clouds.three.auth.password": {"clouds.four.auth.password", "clouds.six.auth.password", "clouds.seven.auth.password"},
		"clouds.three.auth.username": {"clouds.four.auth.username", "clouds.five.auth.username", "clouds.six.auth.username", "clouds.seven.auth.username"},
		"clouds.one.region_name":     nil,
		"clouds.seven.x":             {"clouds.seven.y"},
		"clouds.five.auth.password":  nil,
		"clouds.none":                nil,
	} {
		p, err := ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, use := range parse(t, anchors).Uses(p) {
			got = append(got, use.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", path, diff)
		}
	}
	if uses := parse(t, "f: &f {x: *f, y: z}\n").Uses(Path{}.Key("f").Key("y")); len(uses) == 0 {
		t.Error("an anchor in itself: no use is told")
	}
}
