package listing

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"poolkeeper/zkmodel"
)

// Documents of version v1: whoever changes a key, or what it holds, sees it here. Mistakes: an
// age in place of a time; a key of Nodepool's that came along; YAML that says something else.
func TestDocuments(t *testing.T) {
	for name, table := range map[string]*Table{
		"builds":   Builds(images(), now),
		"uploads":  UploadsOnTrial(images(), nil, now),
		"images":   Images(images(), now, nil),
		"nodes":    Nodes(nodes(), now),
		"requests": Requests(requests()),
		"empty":    Requests(nil),

		"configuration": Configuration(settings()),
	} {
		t.Run(name, func(t *testing.T) {
			var document, asYAML, names strings.Builder
			if err := errors.Join(table.WriteDocument(&document, now), table.WriteYAML(&asYAML, now), table.WriteNames(&names)); err != nil {
				t.Fatal(err)
			}
			var one, other map[string]any
			if err := errors.Join(json.Unmarshal([]byte(document.String()), &one), yaml.Unmarshal([]byte(asYAML.String()), &other)); err != nil {
				t.Fatalf("%v in %s", err, asYAML.String())
			}
			again, err := json.Marshal(other)
			if err != nil {
				t.Fatal(err)
			}
			other = nil
			if err := json.Unmarshal(again, &other); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(one, other); diff != "" {
				t.Errorf("YAML says something else (-JSON +YAML):\n%s", diff)
			}
			file := filepath.Join("testdata", name+".v1.golden")
			got := document.String() + asYAML.String() + names.String()
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
		})
	}
}

// some are nodes of two providers and labels, of different ages.
func some() *Table {
	node := func(id, provider, label string, state zkmodel.NodeState, age time.Duration) *zkmodel.Node {
		return &zkmodel.Node{ID: id, Provider: provider, Type: []string{label}, State: state, StateTime: zkmodel.EpochOf(now.Add(-age))}
	}
	return Nodes([]*zkmodel.Node{
		node("0000000001", "north", "small", zkmodel.NodeReady, 10*24*time.Hour),
		node("0000000002", "south", "large", zkmodel.NodeInUse, 2*time.Hour),
		node("0000000003", "north", "large", zkmodel.NodeFailed, time.Minute),
		{ID: "0000000004", Broken: errors.New("no json")},
	}, now)
}

// namesOf are the names of a table's rows.
func namesOf(t *testing.T, table *Table) string {
	t.Helper()
	var out strings.Builder
	if err := table.WriteNames(&out); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(out.String()), "\n", " "), "000000000", "")
}

// Mistakes: two values of one filter that exclude each other; a value that nobody knows taken for an
// empty listing; one that is known and that no row has taken for a mistake.
func TestFilter(t *testing.T) {
	for _, c := range []struct {
		by            By
		values, known []string
		want, err     string
	}{
		{ByState, nil, nil, "1 2 3 4", ""},
		{ByState, []string{"ready", "failed"}, nil, "1 3", ""},
		{ByState, []string{"broken"}, nil, "4", ""},
		{ByLabel, []string{"large"}, nil, "2 3", ""},
		{ByProvider, []string{"east"}, []string{"east"}, "", ""},
		{ByProvider, []string{"nroth"}, []string{"east"}, "", `--provider "nroth": there is none (did you mean "north"?); these are: east, north, south`},
		{ByImage, []string{"debian"}, nil, "", "--image: there is none in this listing"},
	} {
		table := some()
		err := table.Knows(c.by, c.values, c.known)
		table.Filter(c.by, c.values)
		if fmt.Sprint(err) != c.err && (err != nil || c.err != "") {
			t.Errorf("%s %v: %v, want %s", c.by, c.values, err, c.err)
		}
		if got := namesOf(t, table); err == nil && got != c.want {
			t.Errorf("%s %v: %s, want %s", c.by, c.values, got, c.want)
		}
	}
}

// Mistakes: ages sorted as text; what has no value first; a title that is not known since it has a
// blank.
func TestSort(t *testing.T) {
	for by, want := range map[string]string{
		"age": "3 2 1 4", "-age": "1 2 3 4", "id": "1 2 3 4", "-ID": "4 3 2 1", "label": "2 3 1 4", "Server-ID": "1 2 3 4", "-provider": "2 1 3 4",
	} {
		table := some()
		if err := table.Sort(by); err != nil {
			t.Error(err)
		}
		if got := namesOf(t, table); got != want {
			t.Errorf("by %s: %s, want %s", by, got, want)
		}
	}
	err := some().Sort("-aeg")
	if !errors.Is(err, ErrColumn) || !strings.Contains(err.Error(), `--sort "-aeg": no such column (did you mean "age"?)`) {
		t.Errorf("an unknown column: %v", err)
	}
}

// No line is longer than the terminal is wide, whatever is in the rows, and ids and states are whole
// as long as anything else can be cut. Mistakes: a wide character counted as one; a table that
// has room, cut.
func TestTablesFit(t *testing.T) {
	tables := map[string]func() *Table{
		"nodes": some,
		"wide": func() *Table {
			table := some()
			table.rows[0][1] = text(strings.Repeat("北", 60))
			return table
		},
		"builds": func() *Table { return Builds(images(), now) }, "uploads": func() *Table { return Uploads(images(), now) },
		"waves": func() *Table { return Waves(nil) },
	}
	for name, table := range tables {
		for _, width := range []int{1, 10, 20, 40, 79, 80, 132, 1000} {
			var out strings.Builder
			if err := table().WriteScreen(&out, Screen{Width: width}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out.String()) {
				if w := cells(strings.TrimSuffix(line, "\n")); w > width {
					t.Errorf("%s: a line of %d cells on %d:\n%s", name, w, width, line)
				}
			}
			if width == 80 && name == "wide" && !strings.Contains(out.String(), "0000000001") {
				t.Errorf("ids are cut:\n%s", out.String())
			}
			if width == 1000 && name == "nodes" {
				var plain strings.Builder
				if err := table().WriteText(&plain, false); err != nil || plain.String() != out.String() {
					t.Errorf("with room enough (%v):\n%s\nwant\n%s", err, out.String(), plain.String())
				}
			}
		}
	}
	var out strings.Builder
	if err := tables["wide"]().WriteScreen(&out, Screen{Width: 80, Detail: true}); err != nil || !strings.Contains(out.String(), strings.Repeat("北", 60)) {
		t.Errorf("with details something is cut (%v):\n%s", err, out.String())
	}
}

// cells is how wide text is, where characters of Chinese take two.
func cells(s string) int {
	return utf8.RuneCountInString(s) + strings.Count(s, "北")
}

// Colours are of states only, and change no width.
func TestColours(t *testing.T) {
	var plain, colour strings.Builder
	if err := errors.Join(some().WriteScreen(&plain, Screen{Width: 200}), some().WriteScreen(&colour, Screen{Width: 200, Colour: true})); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(colour.String(), "| \x1b[31mfailed\x1b[0m ") || !strings.Contains(colour.String(), "| \x1b[31mbroken\x1b[0m ") {
		t.Errorf("no colours:\n%q", colour.String())
	}
	bare := strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[90m", "", "\x1b[0m", "").Replace(colour.String())
	if bare != plain.String() {
		t.Errorf("with colours:\n%s\nwithout:\n%s", bare, plain.String())
	}
}

// Mistakes: a table of ours that wraps, or that has lines around its cells in a pipe.
func TestPlainTablesFit(t *testing.T) {
	table := NewPlain("members", Head{Title: "HOST", Key: "host"}, Head{Title: "STATE", Key: "state"}, Head{Key: "hidden"})
	table.Row("a-host-with-a-long-name.example.org", Shown{Text: "refuses: the file is not there", Value: 3}, true)
	table.Row("b", "current", nil)
	var out strings.Builder
	if err := table.WriteText(&out, false); err != nil {
		t.Fatal(err)
	}
	want := "HOST                                 STATE\n" +
		"a-host-with-a-long-name.example.org  refuses: the file is not there\n" +
		"b                                    current\n"
	if out.String() != want {
		t.Errorf("in a pipe:\n%s", out.String())
	}
	for width := 1; width < 100; width++ {
		out.Reset()
		if err := table.WriteScreen(&out, Screen{Width: width}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := cells(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns on a terminal of %d: %s", n, width, line)
			}
		}
		if whole := out.String() == want; whole != (width >= 67) {
			t.Errorf("a terminal of %d:\n%s", width, out.String())
		}
	}
}
