package zookeeper

import (
	"container/heap"
	"time"
)

// agenda is what is to come. One goroutine does it, each thing at its time, those of one time as
// they were asked for: a goroutine for each, as time.AfterFunc has, would cost more than what it does.
type agenda struct {
	items items
	asked int // items so far
	timer *time.Timer
	over  chan struct{} // closed when the goroutine has ended
}

type item struct {
	at  time.Time
	seq int
	do  func()
}

// items are a heap.
type items []*item

func (l items) Len() int      { return len(l) }
func (l items) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *items) Push(x any)   { *l = append(*l, x.(*item)) }

func (l items) Less(i, j int) bool {
	if l[i].at.Equal(l[j].at) {
		return l[i].seq < l[j].seq
	}
	return l[i].at.Before(l[j].at)
}

func (l *items) Pop() any {
	last := len(*l) - 1
	x := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return x
}

// after calls f with the mutex held, as it is now.
func (c *Cluster) after(d time.Duration, f func()) {
	a := &c.agenda
	a.asked++
	one := &item{time.Now().Add(max(d, 0)), a.asked, f}
	heap.Push(&a.items, one)
	if a.items[0] == one {
		a.timer.Reset(max(d, 0))
	}
}

// goAbout begins to do what is on the agenda.
func (c *Cluster) goAbout() {
	c.agenda.timer, c.agenda.over = time.NewTimer(0), make(chan struct{})
	go func() {
		defer close(c.agenda.over)
		for range c.agenda.timer.C {
			if !c.doNext() {
				return
			}
		}
	}()
}

// doNext does one thing whose time has come, if there is one: a bubble's time stands until all that it has set
// off is done, also where another is due at the same moment. It is false when the cluster is closed.
func (c *Cluster) doNext() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &c.agenda
	if c.closed {
		return false
	}
	if len(a.items) > 0 && !a.items[0].at.After(time.Now()) {
		heap.Pop(&a.items).(*item).do()
	}
	if len(a.items) > 0 {
		a.timer.Reset(max(time.Until(a.items[0].at), 0))
	}
	return true
}
