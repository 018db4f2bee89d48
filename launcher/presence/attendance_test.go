package presence

import (
	"bytes"
	"context"
	"strings"
	"sync"
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
				a := NewAttendance(hclog.New(&hclog.LoggerOptions{Output: &log}))
				a.Enter(Serving)
				ctx, cancel := context.WithCancel(t.Context())
				var done sync.WaitGroup
				done.Go(func() { a.Watch(ctx) })
				<-time.After(time.Millisecond)
				for second := range 90 {
					if served := c.serves(second); served {
						a.Enter(Serving)
					} else {
						a.Enter(WaitTree)
					}
					<-time.After(time.Second)
				}
				cancel()
				done.Wait()
				if got := strings.Count(log.String(), "Requests wait"); got != c.want {
					t.Errorf("%d warnings, want %d:\n%s", got, c.want, log.String())
				}
			})
		})
	}
}
