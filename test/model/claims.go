package model

import (
	"math/bits"
	"strconv"

	"github.com/anishathalye/porcupine"
)

// MostRequests is how many requests a history of claims may have; they are called 0, 1, and so on.
const MostRequests = 4

// What becomes of a request.
const (
	requested = iota
	pending
	done
)

// ledger is what launchers share: requests with their locks, the lock of a quota, and the nodes in it.
type ledger struct {
	record [MostRequests]int
	owner  [MostRequests]int // of the request's lock: client + 1
	quota  int               // who has its lock: client + 1
	nodes  uint              // a bit a request whose node is there
}

// Claims says what may happen to requests under a quota with room for some nodes, a node a
// request. The operations are
//
//   - quota, yield: the lock of the quota is taken, with all seen; and given back
//   - count VALUE: so many nodes are counted under it
//   - accept R: the request is claimed under it, and has a node
//   - finish R: it ends; free R: and its node goes
//   - reclaim R: it is taken over from a launcher that is gone; restart R: and waits again
//   - lose: the session is over, and all of its locks
func Claims(room int) porcupine.Model {
	return modelOf(ledger{}, func(l ledger, e Event) (ledger, bool) {
		me := e.Client + 1
		value, _ := strconv.Atoi(e.Value)
		switch e.Op {
		case "quota":
			legal := l.quota == 0
			l.quota = me
			return l, legal
		case "yield":
			legal := l.quota == me
			l.quota = 0
			return l, legal
		case "count":
			return l, l.quota == me && bits.OnesCount(l.nodes) == value
		case "lose":
			return l.lose(me), true
		}
		return l.move(e.Op, me, value%MostRequests, room)
	})
}

// lose ends all locks of a client.
func (l ledger) lose(me int) ledger {
	for r := range l.owner {
		if l.owner[r] == me {
			l.owner[r] = 0
		}
	}
	if l.quota == me {
		l.quota = 0
	}
	return l
}

// move changes a request.
func (l ledger) move(op string, me, r, room int) (ledger, bool) {
	mine := l.owner[r] == me && l.record[r] == pending
	switch op {
	case "accept":
		legal := l.record[r] == requested && l.owner[r] == 0 && l.quota == me && bits.OnesCount(l.nodes) < room
		l.record[r], l.owner[r] = pending, me
		l.nodes |= 1 << r
		return l, legal
	case "finish":
		l.record[r], l.owner[r] = done, 0
		return l, mine
	case "reclaim":
		legal := l.record[r] == pending && l.owner[r] == 0
		l.owner[r] = me
		return l, legal
	case "restart":
		l.record[r], l.owner[r] = requested, 0
		l.nodes &^= 1 << r
		return l, mine
	case "free":
		legal := l.record[r] == done && l.nodes&(1<<r) != 0
		l.nodes &^= 1 << r
		return l, legal
	}
	return l, false
}

// CompleteClaims says of each loss that it may have happened since the last call that succeeded:
// until then the session was there. Events are in the order in which they returned.
func CompleteClaims(events []Event) []Event {
	last := map[int]int64{}
	var list []Event
	for _, e := range events {
		switch {
		case e.Op == "lose":
			e.Call = last[e.Client]
		case e.Result == "ok":
			last[e.Client] = e.Call
		}
		list = append(list, e)
	}
	return list
}
