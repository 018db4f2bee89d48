package request

import (
	"context"
	"testing"

	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/step"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Mistake: a ready node is taken although the lock of the quota was lost since the request was accepted: another
// launcher has counted the tenant's nodes meanwhile, and gives it more than its limit.
func TestReuseNeedsTheQuota(t *testing.T) {
	t.Parallel()
	for name, evicted := range map[string]bool{"kept": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			quota := inflight.NewQuotaLock(func(ctx context.Context) (inflight.Held, error) {
				return recipe.NewLock(r.Store.Session(), zkmodel.QuotaLockPath("here"), "", recipe.EnsureParents()).Acquire(ctx)
			}, func(context.Context) error { return nil }, r.Jobs)
			r.Quotas["here"] = quota
			ctx, stop := context.WithCancel(t.Context())
			defer func() { stop(); r.Jobs.Wait() }()
			quota.Want(ctx)
			zktest.Eventually(t, quota.Use, "the quota is ours")

			free := r.node(zkmodel.NodeReady, "small")
			req := r.request([]string{"small"}, func(r *zkmodel.Request) { r.TenantName = "limited" })
			d := r.accept(req, free)
			d.UsesQuota = true
			r.Step = func(at step.Step) {
				if at == step.Accepted && evicted { // a person takes the lock for one that was left
					if err := r.Store.Session().DeleteTree(t.Context(), zkmodel.QuotaLockPath("here")); err != nil {
						t.Error(err)
					}
				}
			}
			r.Own.Take(req.ID)
			err := r.Server.accept(t.Context(), d)
			stop()
			r.Jobs.Wait()
			if want := zkmodel.RequestFulfilled; !evicted && (err != nil || r.read(req.ID).State != want) {
				t.Errorf("request is %s: %v", r.read(req.ID).State, err)
			}
			if got := r.read(req.ID); evicted && (err == nil || got.State != zkmodel.RequestRequested || got.Reason == "") {
				t.Errorf("request is %s (%s): %v", got.State, got.Reason, err)
			}
			if evicted {
				r.has("small ready")
			}
		})
	}
}
