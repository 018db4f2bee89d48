package fleet

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// watching looks at nodes until stop is called.
func (s *site) watching() (stop func()) {
	ctx, cancel := context.WithCancel(s.Context())
	var looking sync.WaitGroup
	looking.Go(func() { s.watch(ctx) })
	return func() { cancel(); looking.Wait() }
}

// told: every event has come to the sink, in the order of the log, and all kinds are there
// that the steps must have made.
func (s *site) told() {
	s.Helper()
	var want []string
	kinds := map[string]int{}
	reader := recipe.NewLog(event.Root, "").Read(s.store.Session(), recipe.LogPosition{})
	for {
		entry, ok, err := reader.Poll(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		if !ok {
			break
		}
		e, err := event.Of(entry)
		if err != nil {
			s.Fatal(err)
		}
		want = append(want, e.ID)
		kinds[e.Type]++
	}
	zktest.Eventually(s, func() bool { return len(s.filed()) >= len(want) }, "all %d events came to the sink", len(want))
	if got := s.filed(); !slices.Equal(got[:len(want)], want) {
		s.Errorf("events are missing, or in another order:\n%v\nwant\n%v", got, want)
	}
	for kind, least := range map[string]int{
		event.BuildBegan: 8, event.BuildReady: 8, event.UploadReady: 12, event.UploadTested: 6, event.UploadRejected: 2,
		event.CanaryBegan: 2, event.CanaryRetreated: 2, event.WaveEnded: 2, event.Configuration: 2,
	} {
		if kinds[kind] < least {
			s.Errorf("%d events of kind %s, want %d at least", kinds[kind], kind, least)
		}
	}
	s.Logf("%d events: %v", len(want), kinds)
}

// filed are the ids in the file of the sink, each where it came first.
func (s *site) filed() (ids []string) {
	text, err := os.ReadFile(s.path("events"))
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		var e event.Event
		if json.Unmarshal([]byte(line), &e) == nil && !seen[e.ID] { // else half a line of one that was killed, which comes again
			seen[e.ID], ids = true, append(ids, e.ID)
		}
	}
	return ids
}
