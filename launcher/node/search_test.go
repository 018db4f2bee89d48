package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/providers"
)

// sky is a cloud that shows a machine after some looks, or fails to be listed.
type sky struct {
	looks, shows int // shows: at which look; 0 is never
	err          error
}

func (s *sky) list(context.Context) ([]string, error) {
	s.looks++
	if s.looks == s.shows {
		return []string{"vm"}, nil
	}
	return nil, s.err
}

// A machine is searched for as long as it may come, and no longer: given up sooner, a
// second one is made for the node; never given up, its place is lost. A list that fails
// proves nothing, while the cloud may be there again.
func TestSearch(t *testing.T) {
	for name, c := range map[string]struct {
		sky   sky
		left  time.Duration
		moved bool
		found bool
		told  int
		err   error
	}{
		"it is there":                        {sky: sky{shows: 1}, left: time.Minute, found: true},
		"it comes":                           {sky: sky{shows: 4}, left: time.Minute, found: true, told: 1},
		"it never comes":                     {left: time.Minute, told: 1},
		"none can come":                      {},
		"the cloud is away for a while":      {sky: sky{shows: 3, err: providers.ErrTransient}, left: time.Minute, found: true, told: 1},
		"the cloud stays away":               {sky: sky{err: providers.ErrTransient}, left: time.Minute, told: 1, err: providers.ErrTransient},
		"we may not list":                    {sky: sky{err: providers.ErrInvalid}, left: time.Minute, err: providers.ErrInvalid},
		"another provider takes the request": {left: time.Minute, moved: true, told: 1, err: providers.ErrUnanswered},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, told := time.Now(), 0
				var all Searches
				moved, done := all.Begin("200-1")
				defer done()
				if c.moved {
					time.AfterFunc(time.Second, func() { all.End(func(id string) bool { return id == "200-1" }) })
				}
				ids, err := Search{
					Node: "7", List: c.sky.list, Moved: moved, Tell: func(time.Duration) error { told++; return nil },
					Left: func() time.Duration { return c.left - time.Since(begun) },
				}.Run(t.Context())
				if (len(ids) > 0) != c.found || told != c.told || !errors.Is(err, c.err) || c.err == nil && err != nil {
					t.Errorf("found %v (%v), told %d times", ids, err, told)
				}
				if took := time.Since(begun); took > c.left+time.Second || c.moved && took > 2*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// The searches of a request end together, and a later one begins anew: on the channel
// of those before, it would end at once.
func TestSearchesOfARequest(t *testing.T) {
	t.Parallel()
	var all Searches
	first, done := all.Begin("200-1")
	second, _ := all.Begin("200-1")
	other, _ := all.Begin("200-2")
	all.End(func(id string) bool { return id == "200-1" })
	<-first
	<-second
	select {
	case <-other:
		t.Error("the search of another request was ended")
	default:
	}
	again, _ := all.Begin("200-1")
	done() // of those before: it must not forget the new one
	all.End(func(id string) bool { return id == "200-1" })
	<-again
}
