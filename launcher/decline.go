package launcher

import (
	"context"
	"errors"
	"slices"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// decline writes into a request that none of our pools can serve it.
func (s *shift) decline(ctx context.Context, d Decision) error {
	lock, r, err := s.lockRequest(ctx, d, zkmodel.RequestRequested)
	if err != nil {
		return err
	}
	err = s.writeDecline(ctx, lock, r, d.Declining, d.Reason)
	err = errors.Join(err, lock.Release(ctx))
	if err == nil {
		s.own.finish(r.ID)
	}
	return err
}

// writeDecline adds pools to those that declined a request. When no registered
// pool is left, it has failed.
func (s *shift) writeDecline(ctx context.Context, lock *recipe.Held, r *zkmodel.Request, pools []string, reason string) error {
	r.DeclinedBy = slices.Clone(r.DeclinedBy) // the mirror's, perhaps
	for _, id := range pools {
		if !r.DeclinedByPool(id) {
			r.DeclinedBy = append(r.DeclinedBy, id)
		}
	}
	to := zkmodel.RequestRequested
	if declinedByAll(s.mirror.Components(zkmodel.KindPool), r) {
		to = zkmodel.RequestFailed
	}
	if err := s.table.moveRequest(r, to, s.epoch()); err != nil {
		return err
	}
	r.Nodes, r.Reason = nil, reason
	if err := s.store.SaveRequest(ctx, lock, r); err != nil {
		return taken(err)
	}
	s.step(StepDeclined)
	s.metrics.declined(to)
	s.log.Info("Request declined", "request", r.ID, "labels", r.NodeTypes, "state", to, "reason", reason)
	return nil
}
