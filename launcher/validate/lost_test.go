package validate

import (
	"context"
	"testing"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/pool"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Mistake: the answer to the creation of a trial's node is lost, the node is there, and the quota is
// counted without it.
func TestQuotaIsDoubtedAfterALostAnswerOfATrial(t *testing.T) {
	t.Parallel()
	root, proxy := zktest.Root(t), zktest.StartProxy(t, zktest.Shared(t).Addr())
	session := dial(t, proxy.Addr(), root)
	seen := zkmodel.NewStore(dial(t, zktest.Shared(t).Addr(), root), nil) // past the proxy
	trial := &zkmodel.Validation{Provider: "cloud", Image: "debian", Build: "0000000001", Upload: "0000000000"}
	for _, path := range []string{zkmodel.NodesRoot, trial.Path()} {
		if err := session.EnsurePath(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}

	jobs := inflight.NewJobs(session.Clock().Now, func() {})
	t.Cleanup(jobs.Wait)
	barriers := 0
	quota := inflight.NewQuotaLock(func(ctx context.Context) (inflight.Held, error) {
		return recipe.NewLock(session, zkmodel.QuotaLockPath("cloud"), "", recipe.EnsureParents()).Acquire(ctx)
	}, func(context.Context) error { barriers++; return nil }, jobs)
	ctx, stop := context.WithCancel(t.Context())
	defer func() { stop(); jobs.Wait() }()
	quota.Want(ctx)
	zktest.Eventually(t, quota.Use, "the quota is ours")

	v := New(Deps{Store: zkmodel.NewStore(session, nil), Quotas: inflight.Quotas{"cloud": quota}, Jobs: jobs, Log: hclog.NewNullLogger()})
	lock, err := v.Store.AwaitValidations(ctx, "cloud", "here")
	if err != nil {
		t.Fatal(err)
	}
	section := configs.Provider{Name: "cloud", Pools: []configs.Pool{{Name: "main", Labels: []configs.PoolLabel{{Name: "small"}}}}}
	p := &plan{trial: trial, pool: pool.New("host", section, section.Pools[0]), label: "small"}
	proxy.CutDown()
	done := make(chan error)
	go func() { done <- v.begin(ctx, &turn{provider: "cloud", lock: lock}, p) }()
	zktest.Eventually(t, func() bool {
		nodes, err := seen.Nodes(t.Context())
		return err == nil && len(nodes) == 1
	}, "the node is there")
	proxy.Break()
	proxy.Heal()
	if err := <-done; err == nil {
		t.Fatal("begun without an answer")
	}
	if quota.Use() {
		t.Error("the quota is ours although nobody has seen what the transaction made")
	}
	quota.Want(ctx)
	zktest.Eventually(t, quota.Use, "the quota is ours again")
	if barriers != 2 {
		t.Errorf("ours after %d barriers, want 2", barriers)
	}
}

func dial(t *testing.T, server, root string) *recipe.Session {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{server}, Chroot: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return session
}
