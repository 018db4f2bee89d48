package control

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"poolkeeper/builder/plan"
	"poolkeeper/builder/trial"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeMirror is a tree that a test writes.
type fakeMirror struct {
	Mirror  // what a test does not expect panics
	images  map[string]*zkmodel.Image
	barrier func() error
}

func (m *fakeMirror) Barrier(context.Context) error          { return m.barrier() }
func (m *fakeMirror) Components(string) []*zkmodel.Component { return nil }
func (m *fakeMirror) SubscribeImages() *recipe.Subscription  { return nil }
func (m *fakeMirror) Image(name string) *zkmodel.Image       { return m.images[name] }
func (m *fakeMirror) ImageNames() (names []string)           { return nil }
func (*fakeMirror) ProviderPauses() []*zkmodel.ProviderPause { return nil }

// fakeActions does what a test says.
type fakeActions struct {
	do func(ctx context.Context, a plan.Action) error
}

func (f fakeActions) Do(ctx context.Context, a plan.Action) error { return f.do(ctx, a) }
func (fakeActions) Patrol(context.Context)                        {}

// fakeMetrics counts.
type fakeMetrics struct {
	mu        sync.Mutex
	failed    []plan.Kind
	withdrawn []bool
	waiting   map[plan.Kind]int
}

func (*fakeMetrics) Snapshot(plan.Input) {}

func (*fakeMetrics) Tried(*zkmodel.Upload, plan.TrialEnd)    {}
func (*fakeMetrics) Trials([]*zkmodel.Validation, time.Time) {}
func (*fakeMetrics) ClockOff(time.Duration)                  {}
func (m *fakeMetrics) Failed(kind plan.Kind)                 { m.failed = append(m.failed, kind) }
func (*fakeMetrics) Due(string, time.Time)                   {}
func (m *fakeMetrics) Waiting(counts map[plan.Kind]int)      { m.waiting = counts }
func (m *fakeMetrics) Withdrawn(is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.withdrawn = append(m.withdrawn, is)
}

// newTestLoop is a loop that does do with two workers for builds and uploads.
func newTestLoop(do func(ctx context.Context, a plan.Action) error) (*loop, *fakeMirror, *fakeMetrics) {
	mirror := &fakeMirror{images: map[string]*zkmodel.Image{}, barrier: func() error { return nil }}
	metrics := &fakeMetrics{}
	cfg := &configs.Config{Providers: []configs.Provider{{Name: "north", DiskImages: []configs.ProviderImage{{Name: "img"}}}}}
	c := &Control{Deps: Deps{
		Deciding: func(context.Context) func() { return func() {} },
		Config:   func() *configs.Config { return cfg }, Mirror: mirror, Metrics: metrics, Log: hclog.NewNullLogger(),
		BuildWorkers: 2, UploadWorkers: 2, Worker: func(Session) Actions { return fakeActions{do} },
	}, clock: &treeClock{ours: time.Now}}
	return newLoop(c, Session{Trials: trial.New(context.Background(), trial.Deps{})}), mirror, metrics
}

func upload(image string) plan.Action {
	return plan.Action{Kind: plan.Upload, Image: image, Build: "0000000001", Provider: "north"}
}
