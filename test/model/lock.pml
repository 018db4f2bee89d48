/*
 * A lock, the work under it and the writes behind its fence, for N processes on one ZooKeeper.
 * Each step is named after the function that it stands for: zkmodel/recipe unless it says more.
 *
 * What holds: one process at most does the work under the lock; each write that is applied is the
 * holder's; nobody waits for ever; and who ends leaves no contender behind.
 *
 * With -DHISTORY the processes do what was recorded of the real code, in that order: the
 * recording is a run of this model if and only if its end is reached, which is told as an error.
 */
#ifndef N
#define N 3
#endif
#ifndef ROUNDS
#define ROUNDS 1 /* how often each process takes the lock */
#endif
#ifndef FAULTS
#define FAULTS 2 /* in one run: answers lost, pauses, cuts, crashes, givers-up, contenders that others remove */
#endif
#define TRIES (ROUNDS + FAULTS) /* contenders that one process makes at most */
#define LINE (N * TRIES)

mtype:phase = { START, ENTER, FIND, LOOK, AWAIT, HOLD, HELD, WRITE, READ, RELEASE, DISCARD, LOST, GONE };
mtype:ask = { NOTHING, CREATE, SET, DELETE };
mtype:answer = { NONE, DONE, REFUSED, BROKEN };

/* The server. A contender is a number: of process p the n-th is p*TRIES+n+1. */
byte line[LINE]; /* those in the lock's directory, by sequence number */
byte length;
int present;     /* the same, a bit each */
byte value;      /* of the register that is written under the lock */
bool ended[N];   /* the session that the process takes for its own is over here */

/* The processes. */
mtype:phase phase[N];
byte made[N];    /* contenders made so far */
byte base[N];    /* of them, by earlier sessions */
byte ahead[N];   /* the contender that we watch */
bool acting[N];  /* the work under the lock goes on */
bool paused[N];
byte rounds[N];

/* The network: one request of each process, and its answer. */
mtype:ask ask[N];
byte wanted[N];  /* the value to be set */
mtype:answer answer[N];
byte late[N];    /* a set that was sent by a session which its process has given up: its contender */

byte faults = FAULTS;
bool meddled;    /* a third party has removed a contender */
byte i;

#define mine(p) (p * TRIES + made[p] + 1)
#define in(c) ((present >> c) & 1)
#define runs(p, x) (phase[p] == x && !paused[p])
/* Contenders of sessions that p has given up. */
#define leftover(p) ((present >> (p * TRIES + 1)) & ((1 << (phase[p] == GONE -> made[p] + 1 : base[p])) - 1))
#define idle(p) (ask[p] == NOTHING && answer[p] == NONE)

#ifdef HISTORY
/* history.h defines EVENTS, how many they are; EVENT, client * 16 + what, of the one that comes now; VALUE, what it reads or writes. */
#define ACQUIRE 0
#define WRITE_ 2
#define READ_ 4
#define RELEASE_ 6
#define LOSE 8
#define CALL(p, op) (now < EVENTS && EVENT == p * 16 + op)
#define OK(p, op) (now < EVENTS && EVENT == p * 16 + op + 1)
#define TOLD now++
#define JUDGE(x) skip
short now;       /* events that have happened */
byte got[N];     /* what a read has found */
#include "history.h"
#else
#define CALL(p, op) true
#define OK(p, op) true
#define TOLD skip
#define JUDGE(x) assert(x)
#endif
#define COST faults--
#define may (faults > 0)

/* How many work: who is paused does nothing. */
#define WORKS(p) (acting[p] && !paused[p])
#define ALONE (WORKS(0) + WORKS(1) + WORKS(2) <= 1)

inline appear(c) {
	line[length] = c; length++;
	present = present | (1 << c)
}

inline vanish(c) {
	i = 0;
	do :: i < length && line[i] != c -> i++ :: else -> break od;
	if
	:: i < length ->
		do :: i + 1 < length -> line[i] = line[i + 1]; i++ :: else -> break od;
		length--; line[length] = 0;
		present = present & ~(1 << c)
	:: else
	fi;
	i = 0
}

/* Lock.predecessor: who stands right before c, which is in line. */
inline before(p, c) {
	i = 0; ahead[p] = 0;
	do :: line[i] != c -> ahead[p] = line[i]; i++ :: else -> break od;
	i = 0
}

/* What the server does with a request. A transaction of Held.Multi begins with a check of the contender. */
inline apply(p) {
	if
	:: ended[p] -> answer[p] = REFUSED
	:: else ->
		if
		:: ask[p] == CREATE -> appear(mine(p)); answer[p] = DONE
		:: ask[p] == DELETE -> vanish(mine(p)); answer[p] = DONE /* ErrNoNode is as good: deleteSurely */
#ifdef BUG_FENCE
		:: ask[p] == SET ->
#else
		:: ask[p] == SET && !in(mine(p)) -> answer[p] = REFUSED
		:: ask[p] == SET && in(mine(p)) ->
#endif
			JUDGE(line[0] == mine(p)); value = wanted[p]; answer[p] = DONE
		fi
	fi;
	ask[p] = NOTHING
}

/* A new contender, with a name of its own: Lock.create. */
inline again(p) { made[p]++; ask[p] = CREATE; phase[p] = ENTER }

/* Everything of the session goes: Session.end, or the end of the process. The request under way may be
 * applied before the server ends the session; a set as late as that. */
inline leave(p, next) {
	if
	:: ask[p] == CREATE -> appear(mine(p))
	:: ask[p] == SET -> late[p] = mine(p)
	:: ask[p] == DELETE -> vanish(mine(p))
	:: true
	fi;
	ask[p] = NOTHING; answer[p] = NONE; acting[p] = false; ahead[p] = 0; ended[p] = false;
	if :: made[p] + 1 < TRIES -> made[p]++ :: else fi;
	base[p] = made[p];
	phase[p] = next
}

proctype Agent(byte p) {
	byte n;
	do
	/* Lock.Acquire */
	:: d_step { runs(p, START) && idle(p) && CALL(p, ACQUIRE) -> TOLD; ask[p] = CREATE; phase[p] = ENTER }
	:: d_step { runs(p, ENTER) && answer[p] == DONE -> answer[p] = NONE; phase[p] = LOOK }
#ifdef BUG_ORPHAN
	:: d_step { runs(p, ENTER) && answer[p] == BROKEN && made[p] + 1 < TRIES -> answer[p] = NONE; again(p) } /* taken for a failure */
#else
	:: d_step { runs(p, ENTER) && answer[p] == BROKEN -> answer[p] = NONE; phase[p] = FIND }
#endif
	/* Lock.find: sync and list. */
	:: d_step { runs(p, FIND) && !ended[p] && in(mine(p)) -> phase[p] = LOOK }
#ifdef BUG_STALE
	:: d_step { runs(p, FIND) && !ended[p] && made[p] + 1 < TRIES -> again(p) } /* no sync: a follower that lags shows an older list */
#endif
	:: d_step { runs(p, FIND) && !ended[p] && !in(mine(p)) && made[p] + 1 < TRIES -> again(p) } /* another number behind the same prefix */
	/* Lock.await, Lock.predecessor */
	:: d_step { runs(p, LOOK) && !ended[p] && in(mine(p)) ->
		before(p, mine(p));
		if :: ahead[p] == 0 -> phase[p] = HOLD :: else -> phase[p] = AWAIT fi }
	:: d_step { runs(p, LOOK) && !ended[p] && !in(mine(p)) && made[p] + 1 < TRIES -> again(p) } /* ErrFenceLost: stand in line again */
#ifdef BUG_LOOK
	:: d_step { runs(p, AWAIT) && !ended[p] && !in(ahead[p]) -> ahead[p] = 0; phase[p] = HOLD } /* who is gone was not the holder */
#else
	:: d_step { runs(p, AWAIT) && !ended[p] && !in(ahead[p]) -> ahead[p] = 0; phase[p] = LOOK }
#endif
	/* Lock.hold: watch the own contender. */
	:: d_step { runs(p, HOLD) && !ended[p] && in(mine(p)) && OK(p, ACQUIRE) -> TOLD; acting[p] = true; phase[p] = HELD; JUDGE(meddled || ALONE) }
	:: d_step { runs(p, HOLD) && !ended[p] && !in(mine(p)) && made[p] + 1 < TRIES -> again(p) }

	/* Held.Set, as often as its answer is lost: Held.reread. */
#ifdef HISTORY
	:: d_step { runs(p, HELD) && idle(p) && CALL(p, WRITE_) -> wanted[p] = VALUE; TOLD; ask[p] = SET; phase[p] = WRITE }
	:: d_step { runs(p, WRITE) && answer[p] == DONE && OK(p, WRITE_) -> TOLD; answer[p] = NONE; phase[p] = HELD }
	:: d_step { runs(p, HELD) && idle(p) && CALL(p, READ_) -> TOLD; phase[p] = READ; got[p] = 255 }
	:: d_step { runs(p, READ) && got[p] == 255 && !ended[p] -> got[p] = value }
	:: d_step { runs(p, READ) && OK(p, READ_) && got[p] == VALUE -> TOLD; got[p] = 0; phase[p] = HELD }
	:: d_step { runs(p, HELD) && idle(p) && CALL(p, RELEASE_) -> TOLD; acting[p] = false; ask[p] = DELETE; phase[p] = RELEASE }
	:: d_step { runs(p, LOST) && OK(p, LOSE) -> TOLD; phase[p] = START }
#else
	:: d_step { runs(p, HELD) && idle(p) -> ask[p] = SET; phase[p] = WRITE }
	:: d_step { runs(p, WRITE) && answer[p] == DONE -> answer[p] = NONE; phase[p] = RELEASE; ask[p] = DELETE;
#ifndef BUG_EARLY
		acting[p] = false
#endif
		}
#endif
	:: d_step { runs(p, WRITE) && answer[p] == BROKEN -> answer[p] = NONE; ask[p] = SET }
	/* Held.guard, or a fence that failed. */
	:: d_step { (runs(p, HELD) || runs(p, WRITE) || runs(p, READ)) && !ended[p] && !in(mine(p)) && ask[p] == NOTHING && answer[p] != DONE ->
		answer[p] = NONE; acting[p] = false; if :: made[p] + 1 < TRIES -> made[p]++ :: else fi; phase[p] = LOST }
#ifndef HISTORY
	:: d_step { runs(p, LOST) -> phase[p] = START }
#endif
	/* Held.Release, Session.discard: repeated until it is done. */
	:: d_step { (runs(p, RELEASE) || runs(p, DISCARD)) && answer[p] == BROKEN -> answer[p] = NONE; ask[p] = DELETE }
	:: d_step { runs(p, RELEASE) && answer[p] == DONE && OK(p, RELEASE_) -> TOLD; answer[p] = NONE; acting[p] = false; rounds[p]++;
#ifdef HISTORY
		if :: made[p] + 1 < TRIES -> made[p]++ :: else fi; phase[p] = START
#else
		if
		:: rounds[p] < ROUNDS -> made[p]++; phase[p] = START
		:: else -> /* of the living session no contender is left */
			n = base[p];
			do :: n <= made[p] -> assert(!in(p * TRIES + n + 1)); n++ :: else -> break od;
			n = 0;
			phase[p] = GONE
		fi
#endif
		}
	/* Acquire's context ends while it waits. */
	:: d_step { runs(p, AWAIT) && may && made[p] + 1 < TRIES -> COST; ahead[p] = 0; ask[p] = DELETE; phase[p] = DISCARD }
	:: d_step { runs(p, DISCARD) && answer[p] == DONE -> answer[p] = NONE; made[p]++; phase[p] = START }

	/* The server and the network. */
	:: d_step { ask[p] != NOTHING -> apply(p) }
	:: d_step { ask[p] != NOTHING && may && !ended[p] -> COST; apply(p); answer[p] = BROKEN }
	:: d_step { ask[p] != NOTHING && may -> COST; ask[p] = NOTHING; answer[p] = BROKEN }
	:: d_step { late[p] != 0 && in(late[p]) -> JUDGE(line[0] == late[p]); value = wanted[p]; late[p] = 0 }
	:: d_step { late[p] != 0 -> late[p] = 0 }
	/* A cut that lasts: the lease ends, the context with it, and another session is opened (Client.run). */
	:: atomic { !paused[p] && phase[p] != GONE && phase[p] != LOST && (may || ended[p]) ->
		if :: ended[p] :: else -> COST fi;
#if defined(BUG_KEPT)
		if /* what is held is taken for held in the next session */
		:: phase[p] == HELD -> base[p] = made[p] + 1
		:: else -> leave(p, START)
		fi
#elif defined(BUG_LEASE)
		if /* nobody looks at the clock; who is told by the server that the session is over stops */
		:: phase[p] == HELD && !ended[p] -> ended[p] = true; vanish(mine(p))
		:: else -> leave(p, START)
		fi
#elif defined(HISTORY)
		if
		:: phase[p] == HELD || phase[p] == WRITE || phase[p] == READ -> leave(p, LOST)
		:: phase[p] == RELEASE -> leave(p, RELEASE); answer[p] = DONE /* it has happened anyway */
		:: else -> leave(p, START)
		fi
#else
		leave(p, START)
#endif
		}
	/* kill -9, for good: another process of this host would be as the one after a cut. */
	:: atomic { phase[p] != GONE && may -> COST; paused[p] = false; leave(p, GONE) }
	/* SIGSTOP. Meanwhile the server may end the session; what was begun under it ends as the lease's timer fires. */
	:: d_step { !paused[p] && phase[p] != GONE && may -> COST; paused[p] = true }
	:: d_step { paused[p] && !ended[p] -> ended[p] = true; n = base[p];
		do :: n <= made[p] -> vanish(p * TRIES + n + 1); n++ :: else -> break od;
		n = 0 }
	:: d_step { paused[p] -> paused[p] = false; if :: ended[p] -> acting[p] = false :: else fi; JUDGE(meddled || ALONE) }
	/* The server ends the sessions that we have given up; by lease.pml not before. */
#ifndef BUG_STAYS
	:: d_step { leftover(p) -> do :: !in(p * TRIES + n + 1) -> n++ :: else -> break od; vanish(p * TRIES + n + 1); n = 0 }
#endif
	/* A contender is removed by hand. */
	:: d_step { in(mine(p)) && may -> COST; meddled = true; vanish(mine(p)) }
#ifdef HISTORY
	:: now == EVENTS -> assert(false)
#endif
	:: d_step { phase[p] == GONE && !leftover(p) && late[p] == 0 -> skip } break
	od
}

init {
	byte p = 0;
	atomic {
		do :: p < N -> phase[p] = START; ask[p] = NOTHING; answer[p] = NONE; run Agent(p); p++ :: else -> break od
	}
}
