package builder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"poolkeeper/zkmodel"
)

// lingering is a hook that does not listen and has a descendant in a session of
// its own. Both are noted in DIR, and whoever comes next says so if one lives.
const lingering = `#!/bin/sh
cd DIR
for other in pids/*; do
    pid=${other#pids/}
    [ "$pid" = "*" ] || ! kill -0 "$pid" 2>/dev/null || echo overlap >>trace
done
[ ! -e go ] || exit 0
trap '' TERM
touch pids/$$
setsid sh -c 'trap "" TERM; touch pids/$$; echo begin >>trace; while :; do sleep 0.05; done' &
while [ ! -e go ]; do sleep 0.02; done
`

// lingeringHook makes one, and a function that lists what lives of it.
func lingeringHook(t *testing.T, dir string) (hook string, living func() []string) {
	t.Helper()
	hook = filepath.Join(dir, "hook")
	if err := os.WriteFile(hook, []byte(strings.Replace(lingering, "DIR", "'"+dir+"'", 1)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "pids"), 0o755); err != nil {
		t.Fatal(err)
	}
	return hook, func() []string {
		noted, err := os.ReadDir(filepath.Join(dir, "pids"))
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, pid := range noted {
			if _, err := os.Stat(filepath.Join("/proc", pid.Name())); err == nil {
				list = append(list, pid.Name())
			}
		}
		return list
	}
}

// The hook of a builder that was killed has ended, to its last process, before
// it runs again.
func TestHookEndsWithItsBuilder(t *testing.T) {
	t.Parallel()
	s, c := newSiteOf(t)
	trace := filepath.Join(c.Dir, "trace")
	hook, living := lingeringHook(t, c.Dir)
	c.Hook = hook
	first := c.spawn(t)
	s.eventually("the hook runs", func() bool { return len(marks(trace)) == 1 })
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.ended
	c.spawn(t)
	s.eventually("the hook runs again", func() bool { return len(marks(trace)) > 1 })
	if got := strings.Join(marks(trace), " "); got != "begin begin" {
		t.Errorf("hooks overlapped: %s", got)
	}
	if got := living(); len(got) != 2 {
		t.Errorf("processes of hooks: %v", got)
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.settled("one")
	if got := living(); len(got) > 0 {
		t.Errorf("left of a hook that has ended: %v", got)
	}
}

// Time-out and stop reach all that a hook has started.
func TestHookIsEndedWithItsFamily(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"time-out", "stop"} {
		t.Run(how, func(t *testing.T) {
			s := newSite(t)
			hook, living := lingeringHook(t, s.dir)
			s.config.Providers[0].PostUploadHook = hook
			if how == "time-out" {
				s.config.Providers[0].ImageUploadTimeout = 2 * time.Second
			}
			stop := s.start(func(d *Deps) { d.Policy.UploadRetry.First = time.Hour })
			s.eventually("the hook runs", func() bool { return len(marks(filepath.Join(s.dir, "trace"))) == 1 })
			if how == "time-out" {
				s.eventually("the upload has failed", func() bool {
					failed := s.uploads("img", "north", zkmodel.UploadFailed)
					return len(failed) == 1 && strings.Contains(failed[0].Reason, "image-upload-timeout exceeded: 2s")
				})
			}
			stop()
			if got := living(); len(got) > 0 {
				t.Errorf("left of the hook: %v", got)
			}
			if left := s.inCloud("north"); len(left) > 0 {
				t.Errorf("in the cloud: %v", left)
			}
		})
	}
}
