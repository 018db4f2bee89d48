package control

import (
	"fmt"
	"testing"

	"poolkeeper/builder/plan"
)

// The bound of the whole builder holds, a provider alone may use it whole, and
// one of several gets half of it.
func TestLanesOfUploads(t *testing.T) {
	for _, test := range []struct {
		workers, receivers int
		waiting            []string // providers, in order
		want               map[string]int
	}{
		{4, 1, []string{"a", "a", "a", "a", "a"}, map[string]int{"a": 4}},
		{4, 3, []string{"a", "a", "a", "a", "a"}, map[string]int{"a": 2}},
		{4, 3, []string{"a", "a", "a", "b", "b", "b", "c"}, map[string]int{"a": 2, "b": 1, "c": 1}},
		{4, 3, []string{"a", "a", "a", "b", "b", "b"}, map[string]int{"a": 2, "b": 1}},
		{2, 2, []string{"a", "a", "b", "b"}, map[string]int{"a": 1, "b": 1}},
		{1, 2, []string{"a", "b"}, map[string]int{"a": 1}},
		{12, 15, []string{"a", "a", "a", "a", "a", "a", "a", "a", "b"}, map[string]int{"a": 6, "b": 1}},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			q := newQueue(1, test.workers)
			q.receivers = test.receivers
			for n, provider := range test.waiting {
				image := fmt.Sprintf("image-%d", n)
				q.set(image, []plan.Action{{Kind: plan.Upload, Image: image, Build: "0000000001", Provider: provider}})
			}
			got := map[string]int{}
			for task := q.next(); task != nil; task = q.next() {
				got[task.Provider]++
			}
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("under way: %v, want %v", got, test.want)
			}
		})
	}
}
