package event_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// Mistakes: an event that is no CloudEvent, one that a long text makes too large for its
// transaction, keys that say nothing.
func TestEventIsACloudEvent(t *testing.T) {
	at := time.Date(2026, 11, 22, 17, 0, 0, 123456789, time.UTC)
	e := event.New("/poolkeeper/builder/b1", event.BuildFailed, "build/debian-0000000001", at, event.Data{
		"reason": strings.Repeat("ä", 5000), "exit_code": 0, "builder": "", "formats": []string{}, "failures": 2,
	})
	data, err := e.Encode()
	if err != nil || len(data) > 5000 {
		t.Fatalf("%d bytes: %v", len(data), err)
	}
	got, err := event.Of(recipe.LogEntry{LogPosition: recipe.LogPosition{Epoch: "000001-ab", Number: 7}, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 2 || got.ID != "000001-ab-7" || !got.Time.Equal(at.Truncate(time.Millisecond)) {
		t.Errorf("event %+v", got)
	}
	var keys map[string]any
	if err := json.Unmarshal(data, &keys); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"specversion", "source", "type", "subject", "time", "datacontenttype", "data"} {
		if keys[key] == nil {
			t.Errorf("no %s in %s", key, data)
		}
	}
	if _, err := event.Of(recipe.LogEntry{Data: []byte("{broken")}); err == nil {
		t.Error("what is no event is one")
	}
	gap, err := event.Of(recipe.LogEntry{LogPosition: recipe.LogPosition{Epoch: "000001-ab", Number: 9}, Gap: &recipe.LogGap{First: 3, Last: 9}})
	if err != nil || gap.Type != event.Gap || gap.Data["number"] != int64(7) || gap.ID != "000001-ab-3-gap" {
		t.Errorf("gap %+v: %v", gap, err)
	}
}

// Mistakes: a pattern that stops at a slash, or is for types alone.
func TestPatterns(t *testing.T) {
	e := event.Event{Type: event.UploadReady, Subject: "upload/debian-1/ovh/0000000001"}
	for pattern, want := range map[string]bool{
		"": true, "upload.*": true, "*.ready": true, "poolkeeper.upload.ready": true, "upload/*": true, "*/ovh/*": true,
		"upload": false, "build.*": false, "*.failed": false, "*/gra/*": false,
	} {
		if e.Matches(pattern) != want {
			t.Errorf("%q matches: %v", pattern, !want)
		}
	}
	if event.CheckPattern("[a") == nil || event.CheckPattern("build.*") != nil {
		t.Error("patterns are not judged")
	}
}

// Mistake: a list without end, which makes an event that no transaction can carry.
func TestEventsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	many := slices.Repeat([]string{long}, 5000)
	data, err := event.New("/s", event.Configuration, "configuration/builder/x", time.Now(), event.Data{"changes": many, "reason": long}).Encode()
	if err != nil || len(data) > 200<<10 || !strings.Contains(string(data), "more") {
		t.Errorf("%d bytes: %v", len(data), err)
	}
	few := slices.Repeat([]string{"x"}, 1000)
	if got := event.New("/s", event.Configuration, "", time.Now(), event.Data{"changes": few}).Data["changes"]; len(got.([]string)) != 201 || got.([]string)[200] != "… and 800 more" {
		t.Errorf("%v", got)
	}
}
