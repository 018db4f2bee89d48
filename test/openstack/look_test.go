package openstack_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// list runs a listing and decodes it.
func (s *site) list(command string) []map[string]any {
	s.t.Helper()
	out, err := s.command(s.t.Context(), command, "-o", "json").Output()
	if err != nil {
		s.t.Fatalf("%s: %v", command, err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(out, &rows); err != nil {
		s.t.Fatalf("%s: %v in %s", command, err, out)
	}
	return rows
}

// await waits for what the whole site brings about.
func (s *site) await(what string, done func() bool) {
	s.t.Helper()
	const limit = 5 * time.Minute
	for deadline := time.Now().Add(limit); !done(); pause(s.t, 300*time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// awaitImages waits until so many uploads are ready, and there are no others.
func (s *site) awaitImages(n int) []map[string]any {
	s.t.Helper()
	var rows []map[string]any
	s.await(fmt.Sprintf("%d images that are ready", n), func() bool {
		rows = s.list("image-list")
		for _, row := range rows {
			if row["state"] != "ready" {
				return false
			}
		}
		return len(rows) == n
	})
	return rows
}

// wantTruth compares the records with the cloud, as the official client sees it. The two are not read
// in one moment, so what is not true must stay so for a while.
func (s *site) wantTruth() {
	s.t.Helper()
	wrong := s.untrue()
	for deadline := time.Now().Add(30 * time.Second); len(wrong) > 0 && time.Now().Before(deadline); wrong = s.untrue() {
		pause(s.t, 2*time.Second)
	}
	for _, what := range wrong {
		s.t.Error(what)
	}
	if len(wrong) > 0 {
		s.t.Logf("records: %v\n%v", s.list("list"), s.list("image-list"))
	}
}

// untrue is what records and the cloud say otherwise.
func (s *site) untrue() (wrong []string) {
	s.t.Helper()
	// An upload has an image before its record names it: uploads are looked at before and after.
	uploads := s.list("image-list")
	lists := listings(s.t, s.cloud, listServers, listPorts, listFloatingIPs, listImages)
	servers, ports, ips, images := lists[0], lists[1], lists[2], lists[3]
	rows := s.list("image-list")
	uploading := func(image thing) bool {
		return slices.ContainsFunc(slices.Concat(uploads, rows), func(row map[string]any) bool {
			return row["state"] == "uploading" && strings.HasPrefix(image.Name, fmt.Sprintf("%v-", row["image"]))
		})
	}
	recorded := map[string]bool{}
	for _, row := range append(s.list("list"), rows...) {
		for _, key := range []string{"server_id", "external_id"} {
			if id, ok := row[key].(string); ok {
				recorded[id] = true
			}
		}
	}
	if len(ports) != len(servers) || len(ips) > 0 {
		wrong = append(wrong, fmt.Sprintf("%d servers have the ports %v and the floating IPs %v", len(servers), ports, ips))
	}
	for _, one := range append(servers, images...) {
		if !recorded[one.ID] && one.Name != leakName && !uploading(one) {
			wrong = append(wrong, fmt.Sprintf("leaked: %+v", one))
		}
		delete(recorded, one.ID)
	}
	for id := range recorded {
		wrong = append(wrong, "recorded, and not in the cloud: "+id)
	}
	return wrong
}

// awaitLog waits until a daemon has logged a line with all words.
func (s *site) awaitLog(daemon string, words ...string) {
	s.t.Helper()
	s.await(fmt.Sprintf("%q of the %s", words, daemon), func() bool { return s.hasLogged(daemon, words...) })
}

// hasLogged reports whether a daemon has logged a line with all words.
func (s *site) hasLogged(daemon string, words ...string) bool {
	s.t.Helper()
	text, err := os.ReadFile(s.path(daemon + ".log"))
	if err != nil {
		s.t.Fatal(err)
	}
	return hasLine(string(text), words)
}

// hasLine tells whether a line of a text has all words.
func hasLine(text string, words []string) bool {
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			return true
		}
	}
	return false
}

// must runs a command that succeeds.
func (s *site) must(args ...string) {
	s.t.Helper()
	if out, err := s.command(s.t.Context(), args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %v: %s", args, err, out)
	}
}
