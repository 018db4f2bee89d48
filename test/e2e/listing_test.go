package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/test/journey"
)

// row is one row of a listing: keys of the JSON, or titles of the table.
type row map[string]any

// listed runs a listing of the program and returns its rows, from JSON and from
// the table.
func listed(t *testing.T, j *journey.Journey, command string) (objects []row, cells []map[string]string) {
	t.Helper()
	_, out, err := j.CLI(t.Context(), command, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out), &objects); err != nil {
		t.Fatalf("%s prints %q: %v", command, out, err)
	}
	if _, out, err = j.CLI(t.Context(), command); err != nil {
		t.Fatal(err)
	}
	return objects, parseTable(t, out)
}

// parseTable reads a PrettyTable.
func parseTable(t *testing.T, text string) []map[string]string {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	rule := regexp.MustCompile(`^(\+-+)+\+$`)
	if len(lines) < 4 || !rule.MatchString(lines[0]) || lines[2] != lines[0] || lines[len(lines)-1] != lines[0] {
		t.Fatalf("no table:\n%s", text)
	}
	split := func(line string) []string {
		parts := strings.Split(strings.Trim(line, "|"), "|")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		return parts
	}
	titles := split(lines[1])
	rows := []map[string]string{}
	for _, line := range lines[3 : len(lines)-1] {
		one := map[string]string{}
		for i, cell := range split(line) {
			one[titles[i]] = cell
		}
		rows = append(rows, one)
	}
	return rows
}

// checkListings compares dib-image-list and image-list with the tree.
func checkListings(t *testing.T, j *journey.Journey, tree []znode) {
	t.Helper()
	var builds, uploads []row
	var buildCells, uploadCells []map[string]string
	for _, z := range tree {
		part := strings.Split(z.Path, "/")
		switch {
		case z.match(t, "/nodepool/images/*/builds/[0-9]*"):
			r := z.record(t)
			formats := strings.Split(r["formats"].(string), ",")
			builds = append(builds, row{
				"id": part[3] + "-" + part[5], "image": part[3], "builder": r["builder"],
				"formats": anys(formats), "state": r["state"], "age": float64(int(r["state_time"].(float64))),
			})
			buildCells = append(buildCells, map[string]string{
				"ID": part[3] + "-" + part[5], "Image": part[3], "Builder": r["builder"].(string),
				"Formats": r["formats"].(string), "State": r["state"].(string),
			})
		case z.match(t, "/nodepool/images/*/builds/*/providers/*/images/[0-9]*"):
			r := z.record(t)
			uploads = append(uploads, row{
				"id": part[5], "upload_id": part[9], "provider": part[7], "image": part[3],
				"external_name": r["external_name"], "external_id": r["external_id"],
				"state": r["state"], "age": float64(int(r["state_time"].(float64))),
			})
			uploadCells = append(uploadCells, map[string]string{
				"Build ID": part[5], "Upload ID": part[9], "Provider": part[7], "Image": part[3],
				"Provider Image Name": r["external_name"].(string), "Provider Image ID": r["external_id"].(string),
				"State": r["state"].(string),
			})
		}
	}
	if len(builds) == 0 || len(uploads) == 0 {
		t.Fatalf("the tree holds %d builds and %d uploads", len(builds), len(uploads))
	}
	compare(t, j, "dib-image-list", builds, buildCells)
	compare(t, j, "image-list", uploads, uploadCells)
}

// checkNodeListing compares list with the tree.
func checkNodeListing(t *testing.T, j *journey.Journey, tree []znode) {
	t.Helper()
	var nodes []row
	var cells []map[string]string
	for _, z := range tree {
		if !z.match(t, "/nodepool/nodes/[0-9]*") {
			continue
		}
		r, id := z.record(t), strings.Split(z.Path, "/")[3]
		nodes = append(nodes, row{
			"id": id, "provider": r["provider"], "label": r["type"], "server_id": r["external_id"],
			"public_ipv4": r["public_ipv4"], "state": r["state"], "locked": "locked",
			"connection_port": r["connection_port"], "username": r["username"], "allocated_to": r["allocated_to"],
			"launcher": r["launcher"], "pool": r["pool"], "user_data": r["user_data"],
		})
		cells = append(cells, map[string]string{
			"ID": id, "Provider": r["provider"].(string), "Server ID": r["external_id"].(string),
			"State": r["state"].(string), "Locked": "locked",
		})
	}
	if len(nodes) != 1 {
		t.Fatalf("the tree holds %d nodes", len(nodes))
	}
	compare(t, j, "list", nodes, cells)
}

// compare checks that a listing has the wanted rows, each with the wanted values
// among its own, and an age in the table.
func compare(t *testing.T, j *journey.Journey, command string, want []row, wantCells []map[string]string) {
	t.Helper()
	objects, cells := listed(t, j, command)
	if len(objects) != len(want) || len(cells) != len(want) {
		t.Fatalf("%s has %d objects and %d rows, the tree %d", command, len(objects), len(cells), len(want))
	}
	for i := range want {
		if diff := cmp.Diff(want[i], pick(objects[i], want[i])); diff != "" {
			t.Errorf("%s -o json, row %d (-tree +listing):\n%s", command, i, diff)
		}
		if age := cells[i]["Age"]; !regexp.MustCompile(`^00:00:0\d:\d\d$`).MatchString(age) {
			t.Errorf("%s, row %d: age %q", command, i, age)
		}
		if diff := cmp.Diff(wantCells[i], pick(cells[i], wantCells[i])); diff != "" {
			t.Errorf("%s, row %d (-tree +listing):\n%s", command, i, diff)
		}
	}
}

// pick keeps those keys of a row that are wanted.
func pick[M ~map[string]V, V any](r, wanted M) M {
	picked := M{}
	for key := range wanted {
		if value, ok := r[key]; ok {
			picked[key] = value
		}
	}
	return picked
}

func anys(items []string) []any {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = item
	}
	return list
}
