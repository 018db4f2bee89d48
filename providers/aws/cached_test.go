package aws

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Who waits for the answer to another's question can be called off, other keys wait for nobody, and what was
// asked for together is asked for once.
func TestCachedAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c cached[int]
		asked := 0
		slow := func(context.Context) (int, error) {
			asked++
			<-time.After(time.Minute)
			return 7, t.Context().Err()
		}
		for range 3 {
			go func() {
				if value, err := c.get(t.Context(), "slow", time.Hour, slow); value != 7 || err != nil {
					t.Errorf("the answer is %d, %v", value, err)
				}
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.get(ctx, "slow", time.Hour, slow); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who waited a second is told %v", err)
		}
		if value, err := c.get(ctx, "known", time.Hour, func(context.Context) (int, error) { return 1, nil }); value != 1 || err != nil {
			t.Errorf("another key's answer is %d, %v", value, err)
		}
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	})
}
