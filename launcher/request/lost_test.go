package request

import (
	"context"
	"testing"

	"poolkeeper/launcher/inflight"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Mistake: nodes that were made by a transaction without an answer are not counted by the next
// round of decisions, which then goes beyond the quota. The model test/model/claim.pml found it.
func TestQuotaIsDoubtedAfterALostAnswer(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	req := r.request([]string{"small"})
	proxy := zktest.StartProxy(t, zktest.Shared(t).Addr())
	client, err := recipe.Dial(recipe.Config{Servers: []string{proxy.Addr()}, Chroot: r.root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := r.Store // past the proxy
	r.Store = zkmodel.NewStore(session, nil)
	barriers := 0
	quota := inflight.NewQuotaLock(func(ctx context.Context) (inflight.Held, error) {
		return recipe.NewLock(session, zkmodel.QuotaLockPath("here"), "", recipe.EnsureParents()).Acquire(ctx)
	}, func(context.Context) error { barriers++; return nil }, r.Jobs)
	r.Quotas["here"] = quota
	ctx, stop := context.WithCancel(t.Context())
	defer func() { stop(); r.Jobs.Wait() }()
	quota.Want(ctx)
	zktest.Eventually(t, quota.Use, "the quota is ours")

	d := r.accept(req)
	d.UsesQuota = true
	proxy.CutDown()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Own.Take(req.ID)
		if err := r.Server.accept(ctx, d); err == nil {
			t.Error("accepted without an answer")
		}
	}()
	zktest.Eventually(t, func() bool {
		now, err := seen.Request(t.Context(), req.ID)
		return err == nil && now.State == zkmodel.RequestPending
	}, "the request is pending")
	proxy.Break()
	proxy.Heal()
	<-done
	if quota.Use() {
		t.Error("the quota is ours although nobody has seen what the transaction made")
	}
	quota.Want(ctx)
	zktest.Eventually(t, quota.Use, "the quota is ours again")
	if barriers != 2 {
		t.Errorf("ours after %d barriers, want 2", barriers)
	}
}
