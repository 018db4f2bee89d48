/*
 * Requests claimed by N launchers, under the quota of one provider. Each step is named after the
 * function that it stands for: launcher/request, launcher/inflight and zkmodel (Store). Transactions are
 * one step; what their locks are made of is in lock.pml, how long a session is trusted in lease.pml.
 *
 * What holds: a request is served by one launcher at a time and ends once; there are never more nodes
 * than the quota has room for; and while a launcher is left each request ends.
 *
 * A launcher decides by what it sees, which may be old by any time, and its transaction proves it: so both
 * are one step here. One that is stopped until its session is over is one that is cut off, and whose session
 * the server ends next: what it sends after that is refused (lock.pml).
 *
 * With -DHISTORY the launchers do what was recorded of the real code, as in lock.pml.
 */
#ifndef N
#define N 3
#endif
#ifndef REQUESTS
#define REQUESTS 2 /* or 1 */
#endif
#ifndef ROOM
#define ROOM 1 /* nodes that the quota has room for; a request takes one */
#endif
#ifndef FAULTS
#define FAULTS 1 /* in one run: answers lost, cuts, crashes, locks that others remove */
#endif

mtype:state = { REQUESTED, PENDING, DONE };
mtype:work = { NO, ACCEPTED, BEGUN };

/* The tree. An owner is 0, a launcher's number from 1 on, or that plus N for what it has given up and the server still has. */
mtype:state record[REQUESTS];
byte owner[REQUESTS];        /* of the request's lock */
byte quota;                  /* who has the lock of the quota */
byte nodes;                  /* a bit a request whose node is there */
bool ended[REQUESTS];

/* What launchers see, and have in hand. */
bool hold[N];                /* QuotaLock.held: the quota is ours, and all is seen */
byte known[N];               /* the nodes that are counted: Records.Nodes */
bool gone[N];
mtype:state seen[N * REQUESTS];
mtype:work work[N * REQUESTS];

byte faults = FAULTS;
bool meddled;                /* a third party has removed a lock of a request */
byte i;

#define at(p, r) (p * REQUESTS + r)
#define bit(r) (1 << r)
#define COUNT(set) ((set & 1) + ((set >> 1) & 1) + ((set >> 2) & 1) + ((set >> 3) & 1))
#define SERVES(p, r) (work[at(p, r)] == BEGUN)
#if N == 2
#define ALONE(r) (SERVES(0, r) + SERVES(1, r) <= 1)
#else
#define ALONE(r) (SERVES(0, r) + SERVES(1, r) + SERVES(2, r) <= 1)
#endif
#if REQUESTS == 1
#define ANY(p, s) (seen[p] == s)
#define ALL(s) (record[0] == s)
#define STALE(p) (known[p] != nodes || seen[p] != record[0])
#define GIVEN(p) (quota == p + 1 + N || owner[0] == p + 1 + N)
#elif REQUESTS == 2
#define ANY(p, s) (seen[at(p, 0)] == s || seen[at(p, 1)] == s)
#define ALL(s) (record[0] == s && record[1] == s)
#define STALE(p) (known[p] != nodes || seen[at(p, 0)] != record[0] || seen[at(p, 1)] != record[1])
#define GIVEN(p) (quota == p + 1 + N || owner[0] == p + 1 + N || owner[1] == p + 1 + N)
#else
#define GIVEN(p) true
#endif

#ifdef HISTORY
/* history.h defines EVENTS, how many they are; EVENT, client * 32 + what, of the one that comes now; VALUE, its request or count. */
#define QUOTA 0
#define COUNTED 2
#define ACCEPT 4
#define FINISH 6
#define RECLAIM 8
#define RESTART 10
#define YIELD 12
#define FREE 14
#define LOSE 16
#define NONE 254
short now;
byte doing[N];               /* the call that a launcher has made, and 1 more once it has happened */
byte arg[N];
bool lost[N];
#include "history.h"
#define JUDGE(x) skip
#else
#define JUDGE(x) assert(x)
#endif

#ifdef UNCOUNTED /* static machines, or a cloud without limits: many are claimed at once */
#define OURS(p) true
#define FITS(p) true
#else
#define OURS(p) (quota == p + 1)
#define FITS(p) (hold[p] && COUNT(known[p]) < ROOM)
#endif

/* Store.AcceptRequest, one transaction: the record's version, the fence of the quota, the request's lock, the node. */
#if defined(BUG_CLAIM)
#define ACCEPTABLE(p, r) (record[r] != DONE && OURS(p))
#elif defined(BUG_QUOTA)
#define ACCEPTABLE(p, r) (record[r] == REQUESTED && owner[r] == 0)
#else
#define ACCEPTABLE(p, r) (record[r] == REQUESTED && owner[r] == 0 && OURS(p))
#endif
inline accept(r, by) {
	JUDGE(owner[r] == 0 && record[r] == REQUESTED);
	owner[r] = by; record[r] = PENDING;
	#ifndef UNCOUNTED
	JUDGE(COUNT(nodes) < ROOM);
#endif

	nodes = nodes | bit(r)
}

/* Store.FinishRequest: the record and the end of its lock in one transaction. */
inline finish(p, r) {
	JUDGE(record[r] == PENDING && !ended[r]);
	record[r] = DONE; seen[at(p, r)] = DONE; ended[r] = true;
	owner[r] = 0; work[at(p, r)] = NO
}

/* Server.restart, under the request's lock. */
inline restart(p, r) {
	record[r] = REQUESTED; seen[at(p, r)] = REQUESTED;
	nodes = nodes & ~bit(r); known[p] = known[p] & ~bit(r);
	owner[r] = 0; work[at(p, r)] = NO
}

/* Everything of the session goes. Its locks are there until the server ends it. */
inline leave(p) {
	i = 0;
	do
	:: i < REQUESTS ->
		work[at(p, i)] = NO;
		if :: owner[i] == p + 1 -> owner[i] = p + 1 + N :: else fi;
		i++
	:: else -> break
	od;
	i = 0;
	if :: quota == p + 1 -> quota = p + 1 + N :: else fi;
	hold[p] = false
}

/* The server ends what was given up. */
inline end(who) {
	i = 0;
	do
	:: i < REQUESTS -> if :: owner[i] == who -> owner[i] = 0 :: else fi; i++
	:: else -> break
	od;
	i = 0;
	if :: quota == who -> quota = 0 :: else fi
}

/* What is seen catches up: Mirror, Barrier. */
inline see(p) {
	i = 0;
	do :: i < REQUESTS -> seen[at(p, i)] = record[i]; i++ :: else -> break od;
	i = 0;
	known[p] = nodes
}

#ifdef BUG_REREAD
#define STILL(p, r) true /* what was seen, not what is read under the lock */
#else
#define STILL(p, r) (record[r] == PENDING)
#endif
#ifdef BUG_COUNT
#define DOUBT(p) skip
#else
#define DOUBT(p) hold[p] = false; if :: quota == p + 1 -> quota = 0 :: else fi
#endif
#define DECIDES(p, r) (!gone[p] && FITS(p) && seen[at(p, r)] == REQUESTED && work[at(p, r)] == NO)

#define STEPS(p, r) \
	/* schedule.Assign and Server.accept */ \
	:: d_step { DECIDES(p, r) && ACCEPTABLE(p, r) -> accept(r, p + 1); seen[at(p, r)] = PENDING; known[p] = known[p] | bit(r); work[at(p, r)] = ACCEPTED } \
	/* The same, and its answer is lost: discardAll removes the contender, FindOrphans finds the request, and the */ \
	/* quota is given back, since what may have been made is not counted: QuotaLock.Doubt. */ \
	:: d_step { DECIDES(p, r) && ACCEPTABLE(p, r) && faults > 0 -> faults--; accept(r, p + 1 + N); DOUBT(p) } \
	:: d_step { DECIDES(p, r) && faults > 0 -> faults--; DOUBT(p) } \
	/* Server.begin, Store.BeginNodes: fenced by the request's lock; from here on there may be a machine. */ \
	:: d_step { work[at(p, r)] == ACCEPTED && owner[r] == p + 1 -> work[at(p, r)] = BEGUN; JUDGE(meddled || ALONE(r)) } \
	:: d_step { work[at(p, r)] == ACCEPTED && owner[r] == p + 1 && faults > 0 -> faults--; owner[r] = p + 1 + N; work[at(p, r)] = NO } \
	/* Server.settle, Server.fulfill; an answer that is lost is found out about: ReleaseAll. */ \
	:: d_step { work[at(p, r)] == BEGUN && owner[r] == p + 1 -> finish(p, r) } \
	/* A fence that failed: the request is lost, and may be another's. */ \
	:: d_step { work[at(p, r)] != NO && owner[r] != p + 1 -> work[at(p, r)] = NO } \
	/* FindOrphans and Server.reclaim: the lock, the record read again, a barrier; it goes on, or begins again. */ \
	:: d_step { !gone[p] && work[at(p, r)] == NO && seen[at(p, r)] == PENDING && owner[r] == 0 && STILL(p, r) && (nodes & bit(r)) -> \
		owner[r] = p + 1; known[p] = nodes; work[at(p, r)] = ACCEPTED } \
	:: d_step { !gone[p] && work[at(p, r)] == NO && seen[at(p, r)] == PENDING && owner[r] == 0 && STILL(p, r) -> restart(p, r) } \
	/* A request's lock is removed by hand. */ \
	:: d_step { owner[r] == p + 1 && faults > 0 -> faults--; meddled = true; owner[r] = 0 } \
	/* A node of a request that is done is used, and goes: launcher/reaper. */ \
	:: d_step { record[r] == DONE && (nodes & bit(r)) -> nodes = nodes & ~bit(r) }

proctype Launcher(byte p) {
	do
#ifndef HISTORY
	/* QuotaLock.Want, QuotaLock.await: a request waits; the lock, and then a barrier. */
	:: d_step { !gone[p] && !hold[p] && quota == 0 && ANY(p, REQUESTED) -> quota = p + 1; hold[p] = true;
#ifndef BUG_BARRIER
		known[p] = nodes
#endif
		}
	/* QuotaLock.Yield */
	:: d_step { hold[p] && quota == p + 1 -> hold[p] = false; quota = 0 }
	/* Held.guard: the lock was lost. */
	:: d_step { hold[p] && quota != p + 1 -> hold[p] = false }
	:: d_step { quota == p + 1 && !hold[p] -> quota = 0 }
	STEPS(p, 0)
#if REQUESTS == 2
	STEPS(p, 1)
#endif
	:: d_step { !gone[p] && STALE(p) -> see(p) }
	:: d_step { quota == p + 1 && faults > 0 -> faults--; quota = 0 } /* the quota's lock is removed by hand */
	/* A cut that lasts; another session is opened, and all is read: session.run. */
	:: d_step { !gone[p] && faults > 0 -> faults--; leave(p); see(p) }
	/* kill -9, for good */
	:: d_step { !gone[p] && faults > 0 -> faults--; gone[p] = true; leave(p) }
	:: (gone[p] && !GIVEN(p)) || ALL(DONE) -> break
	:: d_step { GIVEN(p) -> end(p + 1 + N) }
#else
	/* Calls and returns, in the order in which they were recorded. What happens, happens in between. */
	:: d_step { now < EVENTS && EVENT / 32 == p && EVENT % 2 == 0 && doing[p] == NONE && !lost[p] -> doing[p] = EVENT % 32; arg[p] = VALUE; now++ }
	:: d_step { now < EVENTS && EVENT / 32 == p && EVENT % 2 == 1 && EVENT % 32 == doing[p] -> doing[p] = NONE; arg[p] = 0; now++ }
	:: d_step { doing[p] == QUOTA && quota == 0 -> quota = p + 1; hold[p] = true; doing[p]++ }
	:: d_step { doing[p] == COUNTED && quota == p + 1 && COUNT(nodes) == arg[p] -> known[p] = nodes; doing[p]++ }
	:: d_step { doing[p] == ACCEPT && ACCEPTABLE(p, arg[p]) && COUNT(nodes) < ROOM -> accept(arg[p], p + 1); doing[p]++ }
	:: d_step { doing[p] == FINISH && owner[arg[p]] == p + 1 && record[arg[p]] == PENDING -> finish(p, arg[p]); doing[p]++ }
	:: d_step { doing[p] == RECLAIM && owner[arg[p]] == 0 && record[arg[p]] == PENDING -> owner[arg[p]] = p + 1; doing[p]++ }
	:: d_step { doing[p] == RESTART && owner[arg[p]] == p + 1 && record[arg[p]] == PENDING -> restart(p, arg[p]); doing[p]++ }
	:: d_step { doing[p] == YIELD && quota == p + 1 -> quota = 0; hold[p] = false; doing[p]++ }
	:: d_step { doing[p] == FREE && (nodes & bit(arg[p])) && record[arg[p]] == DONE -> nodes = nodes & ~bit(arg[p]); doing[p]++ }
	/* The session is lost at any time before that is told; a transaction of it may still be applied. */
	:: d_step { !lost[p] && faults > 0 -> faults--; lost[p] = true; leave(p); end(p + 1 + N); doing[p] = NONE; arg[p] = 0 }
	:: d_step { lost[p] && now < EVENTS && EVENT == p * 32 + LOSE + 1 -> lost[p] = false; now++ }
	:: now == EVENTS -> assert(false)
#endif
	od
}

init {
	byte p = 0;
	atomic {
		do :: p < REQUESTS -> record[p] = REQUESTED; p++ :: else -> break od;
		p = 0;
		do :: p < N * REQUESTS -> seen[p] = REQUESTED; work[p] = NO; p++ :: else -> break od;
		p = 0;
		do
		:: p < N ->
#ifdef HISTORY
			doing[p] = NONE;
#endif
			run Launcher(p); p++
		:: else -> break
		od
	}
}
