package launcher

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

// A launcher whose sessions come and go says so, and what it waits for; one that
// misses a few seconds does not.
func TestSilenceIsExplained(t *testing.T) {
	for name, c := range map[string]struct {
		serves func(second int) bool
		want   int // warnings in 90 s
	}{
		"always":                     {func(int) bool { return true }, 0},
		"a session lost a minute":    {func(s int) bool { return s%60 > 8 }, 0},
		"one second in five":         {func(s int) bool { return s%5 == 0 }, 3},
		"never":                      {func(int) bool { return false }, 3},
		"ended after three quarters": {func(s int) bool { return s < 68 }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				l := &Launcher{log: hclog.New(&hclog.LoggerOptions{Output: &log})}
				l.serving.Store(true)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- l.watchAttendance(ctx) }()
				<-time.After(time.Millisecond)
				for second := range 90 {
					if served := c.serves(second); served {
						l.stage(stageServing)
						l.serving.Store(true)
					} else {
						l.stage(stageTree)
						l.serving.Store(false)
					}
					<-time.After(time.Second)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if got := strings.Count(log.String(), "Requests wait"); got != c.want {
					t.Errorf("%d warnings, want %d:\n%s", got, c.want, log.String())
				}
			})
		})
	}
}
