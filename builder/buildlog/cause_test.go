package buildlog

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/builder/dib"
	"poolkeeper/zkmodel/diblog"
)

// The logs are of builds that testdata/failures/make has made to fail.
func TestFindCause(t *testing.T) {
	want := map[string][2]string{ // line and place
		"missing-element": {"diskimage_builder.element_dependencies.MissingElementException: Element 'no-such-element' not found", ""},
		"no-init-system":  {"DIB_INIT_SYSTEM is not set! Can not continue", ""},
		"journal":         {"Total journal size too big for filesystem.", ""},
		"mkfs":            {"mkfs.ext4: invalid option -- 'Z'", ""},
		"fs-type":         {"mkfs: failed to execute mkfs.nosuchfs: No such file or directory", ""},
		"mirror": {"E: Failed to fetch http://127.0.0.1:9/debian/dists/bookworm/InRelease  Could not connect to 127.0.0.1:9 (127.0.0.1)." +
			" - connect (111: Connection refused)", "root.d/50-bootstrap"},
		"package":     {"E: Unable to locate package no-such-package", "root.d/50-bootstrap"},
		"hook":        {"configure: error: no acceptable C compiler found in $PATH", "extra-data.d/50-configure"},
		"hook-silent": {"", "extra-data.d/50-silent"},
		"killed":      {"Killed                  bash -c 'kill -KILL $$'", "extra-data.d/50-killed"},
		"clone": {"fatal: unable to access 'http://127.0.0.1:9/repository.git/': Failed to connect to 127.0.0.1 port 9 after 0 ms:" +
			" Couldn't connect to server", "extra-data.d/50-clone"},
		"no-space": {"No space left on device", ""},
		"time-out": {"", "extra-data.d/50-slow"},
		// Nothing that the tools said afterwards tells of sudo's remark.
		"unresolved": {"sudo: unable to resolve host builder1: Name or service not known (diskimage-builder takes that for the name of" +
			` its loop device: add the line "127.0.1.1 builder1" to /etc/hosts)`, ""},
	}
	logs, err := filepath.Glob("testdata/failures/*.log")
	if err != nil || len(logs) != len(want) {
		t.Errorf("%d logs, %d wanted: %v", len(logs), len(want), err)
	}
	for _, log := range logs {
		name := strings.TrimSuffix(filepath.Base(log), ".log")
		t.Run(name, func(t *testing.T) {
			got, err := FindCause(log)
			if err != nil {
				t.Fatal(err)
			}
			if name == "killed" || name == "no-space" { // a process id; a folder
				_, got.Line, _ = strings.Cut(got.Line, want[name][0])
				got.Line = want[name][0] + got.Line
			}
			if diff := cmp.Diff(diblog.Cause{Line: want[name][0], Place: want[name][1]}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What writes the last line of a log and what reads it may not know each other.
func TestExitLineIsTheOneThatIsRead(t *testing.T) {
	if dib.ExitLine != diblog.ExitLine {
		t.Errorf("%q is written, %q is read", dib.ExitLine, diblog.ExitLine)
	}
}

func TestNoLogHasNoCause(t *testing.T) {
	if _, err := FindCause(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no error for a missing log")
	}
}
