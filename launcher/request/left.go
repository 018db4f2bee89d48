package request

import "poolkeeper/zkmodel"

// leave remembers a request that waits again, as we wrote it. While it waits nobody holds its
// lock: when it is deleted then, who wrote it last tells the end of its trace.
func (s *Server) leave(r *zkmodel.Request) {
	if !s.Tracer.On() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.State != zkmodel.RequestRequested { // its end is told
		delete(s.left, r.ID)
		return
	}
	s.left[r.ID] = new(*r)
}

// takeUp forgets a request that is in our hands again.
func (s *Server) takeUp(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.left, id)
}

// TellDeleted tells of requests that we wrote last, and that were deleted while they waited.
// requests are all that there are.
func (s *Server) TellDeleted(requests []*zkmodel.Request) {
	for _, r := range s.deleted(requests) {
		s.Tracer.Deleted(r, s.Ahead())
	}
}

// deleted are those of what we left that are there no more; what others wrote is theirs.
func (s *Server) deleted(requests []*zkmodel.Request) (gone []*zkmodel.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.left) == 0 {
		return nil
	}
	there := make(map[string]*zkmodel.Request, len(requests))
	for _, r := range requests {
		there[r.ID] = r
	}
	for id, ours := range s.left {
		r := there[id]
		if r == nil {
			gone = append(gone, ours)
		}
		if r == nil || r.Stat.Version > ours.Stat.Version {
			delete(s.left, id)
		}
	}
	return gone
}
