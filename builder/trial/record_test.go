package trial

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// A script goes to its node as it is, or not at all. Mistake: one that is no UTF-8 is changed
// by the JSON of its record, and then fails on every node.
func TestScriptsAreText(t *testing.T) {
	dir := t.TempDir()
	cfg := &configs.Config{ElementsDir: dir}
	for name, text := range map[string]string{"good": "#!/bin/sh\necho Größe\n", "bad": "\x7fELF\xff\xfe\x80"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := script(cfg, "good"); err != nil || text != "#!/bin/sh\necho Größe\n" {
		t.Errorf("good: %q, %v", text, err)
	}
	if _, err := script(cfg, "bad"); err == nil || !strings.Contains(err.Error(), "not text in UTF-8") {
		t.Errorf("bad: %v", err)
	}
}

// As many scripts as a configuration may name, each as long as it may be, fit into a
// record that ZooKeeper takes, or the image is not sent. Mistake: an image that is in its cloud
// before its trial turns out to be too long to be written, and is sent again and again.
func TestScriptsFitIntoARecord(t *testing.T) {
	dir := t.TempDir()
	image := configs.DiskImage{Name: "img", Validate: &configs.Validate{}}
	for range 8 {
		image.Validate.Checks = append(image.Validate.Checks, configs.ValidateCheck{Script: "long"})
	}
	cfg := &configs.Config{ElementsDir: dir, DiskImages: []configs.DiskImage{image}}
	for line, fits := range map[string]bool{"test <a> && echo \"b\" | grep 'ü'\n": true, "\x01\x02\x03": false} {
		text := strings.Repeat(line, maxScript/len(line))
		if err := os.WriteFile(filepath.Join(dir, "long"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		v, err := Wanted(cfg, "img", "north")
		if !fits {
			if err == nil || !strings.Contains(err.Error(), "image img cannot be tried, so that it is not uploaded: its checks are") {
				t.Errorf("%q: %v", line, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		record, err := v.Encode()
		again := &zkmodel.Validation{}
		if err := errors.Join(err, json.Unmarshal(record, again)); err != nil || len(again.Checks) != 8 || again.Checks[7].Text != text {
			t.Errorf("%q comes back otherwise: %v", line, err)
		}
	}
}
