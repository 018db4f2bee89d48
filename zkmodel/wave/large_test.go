package wave

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// Mistakes: a wave of 10,000 images for four providers that no server takes; one that is too
// large all the same, and is refused without a word of what to do.
func TestLargeWaves(t *testing.T) {
	t.Parallel()
	ctx, session := t.Context(), connected(t)
	store := NewStore(session)
	providers := []string{"provider-east", "provider-west", "provider-nord", "provider-sued"}
	jobs := make([]Job, 10_000)
	for i := range jobs {
		jobs[i] = Job{Image: fmt.Sprintf("image-%07d", i), Providers: providers}
	}
	jobs[4711].Closed = map[string]string{"provider-home": "paused"}
	if made, err := store.Create(ctx, &Wave{ID: "large", MaxFailures: "0"}, jobs); err != nil || !made {
		t.Fatalf("create: %v, %v", made, err)
	}
	held, err := store.Queue().Take(ctx, "large", "test")
	if err != nil {
		t.Fatal(err)
	}
	d, err := store.Open(ctx, held, "large")
	if err != nil || !reflect.DeepEqual(d.Jobs, jobs) {
		t.Fatalf("opened with other jobs: %v", err)
	}
	rows, all, err := store.Rows(ctx, "large", []State{Pending}, 2)
	if err != nil || all != len(jobs) || len(rows) != 2 {
		t.Errorf("%d of %d jobs: %v", len(rows), all, err)
	}
	over := make([]Job, maxJobs+1)
	for i := range over {
		over[i].Image = fmt.Sprint(i)
	}
	for what, create := range map[string]func() (bool, error){
		"too many images": func() (bool, error) { return store.Create(ctx, &Wave{ID: "over", MaxFailures: "0"}, over) },
		"a long reason": func() (bool, error) {
			return store.Create(ctx, &Wave{ID: "over", MaxFailures: "0", Reason: strings.Repeat("x", 2<<20)}, over[:1])
		},
	} {
		if made, err := create(); made || !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "--match") {
			t.Errorf("%s: %v, %v", what, made, err)
		}
	}
	if _, there, err := session.Exists(ctx, store.Queue().RequestPath("over")); there || err != nil {
		t.Errorf("something is made of what is refused: %v", err)
	}
}
