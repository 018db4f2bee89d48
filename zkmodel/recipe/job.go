package recipe

import "slices"

// treeWorkers is how many reads a Tree has under way at most.
const treeWorkers = 128

// job is a node to be read.
type job struct {
	node    *treeNode
	want    Interest
	epoch   uint64
	running bool
	again   Interest // wanted since it runs
	later   uint64   // the epoch of again
}

// waiter is a barrier: it opens when no job of its epoch or an older one is open.
type waiter struct {
	epoch uint64
	done  chan struct{}
}

// enqueue makes a job of reading what is wanted of n, or adds to the one that there is.
func (f *follower) enqueue(n *treeNode, want Interest, epoch uint64, hot bool) {
	switch j := f.jobs[n]; {
	case want == None:
	case j == nil:
		j = &job{node: n, want: want, epoch: epoch}
		f.jobs[n] = j
		f.open[epoch]++
		if hot {
			f.hot = append(f.hot, j)
		} else {
			f.cold = append(f.cold, j)
		}
		if f.workers < treeWorkers {
			f.workers++
			f.session.background(f.work)
		}
	case !j.running:
		j.want |= want
		if old := j.epoch; epoch < old { // as below
			f.open[epoch]++
			j.epoch = epoch
			f.done(old)
		}
	default:
		switch old := j.later; {
		case j.again == None:
			f.open[epoch]++
			j.later = epoch
		case epoch < old: // the barrier behind the older epoch waits for all of it
			f.open[epoch]++
			j.later = epoch
			f.done(old)
		}
		j.again |= want
	}
}

// take returns the next job, or nil.
func (f *follower) take() *job {
	var j *job
	switch {
	case len(f.hot) > 0:
		j, f.hot = f.hot[0], f.hot[1:]
	case len(f.cold) > 0:
		last := len(f.cold) - 1
		j, f.cold[last] = f.cold[last], nil
		f.cold = f.cold[:last]
	default:
		if f.hot, f.cold = nil, nil; len(f.jobs) == 0 {
			f.jobs = map[*treeNode]*job{} // they may have been large
		}
		return nil
	}
	j.running = true
	return j
}

// finish ends j, and makes a new job of what was wanted meanwhile.
func (f *follower) finish(j *job) {
	delete(f.jobs, j.node)
	if j.again != None {
		if !j.node.gone {
			f.enqueue(j.node, j.again, j.later, true)
		}
		f.done(j.later)
	}
	f.done(j.epoch)
}

// done counts one job of epoch as done.
func (f *follower) done(epoch uint64) {
	if f.open[epoch]--; f.open[epoch] == 0 {
		delete(f.open, epoch)
		f.settle()
	}
}

// settle opens the barriers before which no job is left.
func (f *follower) settle() {
	if len(f.waiters) == 0 {
		return
	}
	oldest := f.epoch
	for epoch := range f.open {
		oldest = min(oldest, epoch)
	}
	f.waiters = slices.DeleteFunc(f.waiters, func(w waiter) bool {
		if w.epoch < oldest {
			close(w.done)
		}
		return w.epoch < oldest
	})
}

// work does jobs until there are none.
func (f *follower) work() {
	t := f.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() { f.workers-- }()
	for f.ctx.Err() == nil {
		j := f.take()
		if j == nil {
			return
		}
		path, want := t.path(j.node), j.want
		t.mu.Unlock()
		got, err := f.fetch(path, want)
		t.mu.Lock()
		if f.round == t.rounds && !j.node.gone && f.ctx.Err() == nil {
			f.apply(j, path, got, err)
		}
		f.finish(j)
	}
}
