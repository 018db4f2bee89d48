package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// FuzzArguments: a line is refused in words, or chooses one command; and the model of a few
// commands, which is quick to make, reads it as the model of all does.
func FuzzArguments(f *testing.F) {
	for _, line := range []string{
		"", "image-list", "image-list\x00--detail", "-c\x00image-build\x00image-list", "image-build\x00debian\x00--wait", "list\x00--state=ready", "--help", "--version", "wave\x00create\x00--all",
		"node-delete\x00--older-than\x005m\x00--limit\x00-1", "delete\x00--now\x000000000001", "image-list\x00-o\x00json\x00extra", "imagelist", "--", "--\x00image-list", "-c", "-c=",
		"hold\x00--for\x001h\x001", "request\x00--label", "config\x00push", "explain\x00--\x00-x", "image-list\x00\xff", "secret\x00set\x00-", "status\x00--check=maybe", "completion\x00bash",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, "\x00")
		if len(args) > 12 || strings.Contains(text, "help") && len(text) > 100 {
			return
		}
		var all cli
		var out bytes.Buffer
		want, wantErr := parseAs(&all, args, io.Discard, io.Discard)
		got, err := parse(args, &out, &out)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, and with all commands %v", args, err, wantErr)
		}
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Errorf("%q: an error without words", args)
			}
			return
		}
		if got.printed != want.printed {
			t.Fatalf("%q: printed %v, and with all commands %v", args, got.printed, want.printed)
		}
		if !got.printed && got.Command() != want.Command() {
			t.Errorf("%q is %q, and with all commands %q", args, got.Command(), want.Command())
		}
	})
}
