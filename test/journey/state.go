package journey

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"poolkeeper/zkmodel"
)

// State says for people who wait how far the environment is: what its tree shows of
// builds, uploads, requests and nodes that are not done, and the last warning of its
// logs. It may be called while a step runs.
func (j *Journey) State() string {
	m := j.following.Load()
	if m == nil {
		return lastWarning(j.Dir)
	}
	var told []string
	say := func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	for _, b := range m.Image(j.Image).Builds {
		if len(b.Uploads) == 0 {
			say("build %s is %s", b.Name(), b.State)
		}
		for _, u := range b.Uploads {
			if u.State != zkmodel.UploadReady {
				say("upload of %s to %s is %s", b.Name(), u.Provider, u.State)
			}
		}
	}
	for _, r := range m.Requests() {
		say("request %s is %s %s", r.ID, r.State, r.Reason)
	}
	for _, n := range m.Nodes() {
		say("node %s is %s %s", n.ID, n.State, n.Reason)
	}
	if warning := lastWarning(j.Dir); warning != "" {
		say("log: %s", warning)
	}
	return strings.Join(told, "; ")
}

// lastWarning is the last warning or error in the logs of an environment, without its
// time.
func lastWarning(dir string) string {
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log")) // the pattern is good
	last, at := "", ""
	for _, file := range logs {
		text, _ := os.ReadFile(file) // the rest has to do
		for line := range bytes.Lines(text) {
			stamp, rest, found := strings.Cut(strings.TrimSpace(string(line)), " ")
			if found && stamp >= at && (strings.HasPrefix(rest, "[WARN]") || strings.HasPrefix(rest, "[ERROR]")) {
				last, at = rest, stamp
			}
		}
	}
	return last
}

// hopeless tells of a request that will get no node any more: what waits for its guest
// need not wait longer.
func (j *Journey) hopeless() error {
	if j.Request == "" {
		return nil
	}
	if r := j.mirror.Request(j.Request); r != nil && r.State == zkmodel.RequestFailed {
		return fmt.Errorf("request %s %w: %s", r.ID, ErrFailed, r.Reason)
	}
	return nil
}

// obstacleEvery is how often the builder's reasons are asked for.
const obstacleEvery = 3 * time.Second

// watchObstacle ends a wait for the first build when the builder has a reason against
// it: in a new environment nothing that such a reason is about changes by itself.
func (j *Journey) watchObstacle(ctx context.Context, end context.CancelCauseFunc) {
	tick := time.NewTicker(obstacleEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if len(j.mirror.Image(j.Image).Builds) > 0 {
			return
		}
		_, out, err := j.CLI(ctx, "explain", j.Image, "-o", "json")
		if err != nil {
			continue // of the moment; the wait has an end of its own
		}
		if reason := obstacleIn([]byte(out)); reason != "" {
			end(fmt.Errorf("build of %s %w: the builder does not begin it: %s", j.Image, ErrFailed, reason))
			return
		}
	}
}

// obstacleIn finds what speaks against a build in what explain says.
func obstacleIn(text []byte) string {
	var all []struct {
		Verdicts []struct{ Subject, Rule, Verdict, Detail string } `json:"verdicts"`
	}
	if json.Unmarshal(text, &all) != nil {
		return ""
	}
	for _, explained := range all {
		for _, v := range explained.Verdicts {
			if v.Subject == "build" && v.Verdict == "no" && v.Rule != "build lock" { // a lock is given back
				return v.Rule + ": " + v.Detail
			}
		}
	}
	return ""
}
