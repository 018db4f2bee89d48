package singleton

import (
	"context"
	"errors"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// nodeRecords are the nodes' records as Leaks and Static read and change them.
type nodeRecords struct {
	store  *zkmodel.Store
	mirror *zkmodel.Mirror
	now    func() time.Time
}

// Absent proves that there is no record of a node.
func (r nodeRecords) Absent(ctx context.Context, node string) (zkmodel.Proof, error) {
	return r.mirror.Absent(ctx, r.store.Session(), zkmodel.NodePath(node))
}

// LaunchOf is the id of a node's launch.
func (r nodeRecords) LaunchOf(ctx context.Context, n *zkmodel.Node) (string, error) {
	return r.store.LaunchOf(ctx, n)
}

// Locked calls work with a node's record, read under its lock.
func (r nodeRecords) Locked(ctx context.Context, node string, work func(context.Context, *zkmodel.Node, func() (zkmodel.Proof, error)) error) error {
	lock, n, err := r.store.LockNode(ctx, node, "")
	if err != nil {
		return err
	}
	bound, unbind := lock.Bind(ctx)
	defer unbind()
	err = work(bound, n, func() (zkmodel.Proof, error) { return zkmodel.UnderLock(lock, n) })
	return errors.Join(err, lock.Release(ctx))
}

// CreateReady makes the record of a node that is ready.
func (r nodeRecords) CreateReady(ctx context.Context, n *zkmodel.Node) error {
	lock, err := r.store.CreateNode(ctx, n)
	if err != nil {
		return err
	}
	if err = zkmodel.Move(n, zkmodel.NodeReady, zkmodel.ByUs, zkmodel.EpochOf(r.now())); err == nil {
		err = r.store.SaveNode(ctx, lock, n)
	}
	return errors.Join(err, lock.Release(ctx))
}

// Retire marks a node for deletion that is ready and nobody's.
func (r nodeRecords) Retire(ctx context.Context, id, why string) error {
	lock, n, err := r.store.LockNode(ctx, id, "")
	if err != nil {
		return err
	}
	if n.State == zkmodel.NodeReady && n.AllocatedTo == "" {
		n.Reason = why
		if err = zkmodel.Move(n, zkmodel.NodeDeleting, zkmodel.ByUs, zkmodel.EpochOf(r.now())); err == nil {
			err = r.store.SaveNode(ctx, lock, n)
		}
	}
	return errors.Join(err, lock.Release(ctx))
}

// leakMemory keeps what searches for machines of a provider find, behind the fence of the duty.
type leakMemory struct {
	store    *zkmodel.Store
	duty     *recipe.Held
	provider string
}

// Findings are what is kept.
func (m leakMemory) Findings(ctx context.Context) (map[string]time.Time, error) {
	return m.store.LeakedMachines(ctx, m.provider)
}

// SaveFindings replaces it.
func (m leakMemory) SaveFindings(ctx context.Context, found map[string]time.Time) error {
	return m.store.SaveLeakedMachines(ctx, m.duty, m.provider, found)
}

// leaderTree is what Cleanup and ForeignLocks read and remove while we lead.
type leaderTree struct {
	lead   *recipe.Held
	mirror *zkmodel.Mirror
}

// Children are the names right below a path.
func (t leaderTree) Children(ctx context.Context, path string) ([]string, error) {
	return t.lead.Session().Children(ctx, path)
}

// AllAbsent proves of records that they are gone.
func (t leaderTree) AllAbsent(ctx context.Context, paths ...string) (map[string]zkmodel.Proof, error) {
	return t.mirror.AllAbsent(ctx, t.lead.Session(), paths...)
}

// Remove removes nodes, all or none.
func (t leaderTree) Remove(ctx context.Context, paths ...string) error {
	ops := make([]recipe.Op, len(paths))
	for i, path := range paths {
		ops[i] = recipe.OpDelete(path, recipe.AnyVersion)
	}
	_, err := t.lead.Multi(ctx, ops...)
	return err
}

// RemoveVersion removes a record unless it was changed.
func (t leaderTree) RemoveVersion(ctx context.Context, path string, version int32) error {
	_, err := t.lead.Multi(ctx, recipe.OpDelete(path, version))
	return err
}

// Contenders are those for a lock.
func (t leaderTree) Contenders(ctx context.Context, lock string) ([]recipe.Contender, error) {
	return recipe.Contenders(ctx, t.lead.Session(), lock)
}

// LauncherSessions are those that have registered pools.
func (t leaderTree) LauncherSessions(ctx context.Context) (map[int64]bool, error) {
	pools, err := recipe.Members(ctx, t.lead.Session(), zkmodel.ComponentsRoot+"/"+zkmodel.KindPool)
	if err != nil {
		return nil, err
	}
	sessions := map[int64]bool{}
	for _, m := range pools {
		sessions[m.Stat.EphemeralOwner] = true
	}
	return sessions, nil
}

// CanaryImages are the providers and images with records of canaries.
func (t leaderTree) CanaryImages(ctx context.Context) ([][2]string, error) {
	return zkmodel.NewStore(t.lead.Session(), nil).CanaryImages(ctx)
}

// ForgetCanaries removes such a record.
func (t leaderTree) ForgetCanaries(ctx context.Context, provider, image string) error {
	return zkmodel.NewStore(t.lead.Session(), nil).ForgetCanaries(ctx, t.lead, provider, image)
}
