/*
 * For how long a session can be trusted: zkmodel/recipe/client/lease.go, one session of a process
 * that runs, over one connection after the other, with a clock of TICKS steps a session.
 *
 * What holds: a server ends the session only after the process has ended it for itself. lock.pml
 * and claim.pml build on that.
 */
#ifndef TICKS
#define TICKS 4 /* the time-out that the server granted */
#endif
#ifndef FLYING
#define FLYING 3 /* requests without an answer */
#endif

byte marks[FLYING]; /* how long ago each was sent: lease.marks */
byte sent;          /* of them, without an answer: lease.sent - lease.answered */
byte arrived;       /* of those, that the server has received */
byte stray;         /* of an earlier connection, which the server may receive still */
byte heard;         /* how long ago lease.heard was */
byte silence;       /* how long ago the server received something */
bool over;          /* our context has ended: Session.end */
bool expired;       /* the server has ended the session */
byte i;

/* The first mark goes, and counts as heard: lease.answer. */
inline forward() {
	i = 0;
	do
	:: i + 1 < sent -> marks[i] = marks[i + 1]; i++
	:: else -> break
	od;
	sent--;
	marks[sent] = 0;
	i = 0
}

inline older(age) { age = (age <= TICKS -> age + 1 : age) }

/* Time passes. A process that runs is told in time that its lease is over; what it does then is done
 * before the next step of the clock, as is told by Guard's timer. */
inline tick() {
	i = 0;
	do
	:: i < sent -> older(marks[i]); i++
	:: else -> break
	od;
	i = 0;
	older(heard);
	older(silence)
}

#ifdef BUG_LATE
#define LEFT (heard <= TICKS) /* ends a step late */
#else
#define LEFT (heard < TICKS) /* lease.left */
#endif

active proctype Session() {
	do
	:: d_step { !over && sent < FLYING -> marks[sent] = 0; sent++ } /* lease.send, before each packet goes out */
	:: d_step { arrived < sent && !expired -> arrived++; silence = 0 }
	:: d_step { stray > 0 && !expired -> stray--; silence = 0 }
	:: d_step { !over && arrived > 0 -> /* Link.seen, lease.answer */
#ifdef BUG_SINCE_ANSWER
		heard = 0; /* counts from when the answer came */
#else
		heard = marks[0];
#endif
		forward(); arrived-- }
#ifdef BUG_EVENTS
	:: d_step { !over && sent > 0 -> /* a watch event is counted as an answer */
		heard = marks[0];
		if :: arrived == sent -> arrived-- :: else fi;
		forward() }
#endif
	:: d_step { sent > 0 -> /* the connection breaks: lease.restart */
		stray = sent - arrived;
		sent = 0; arrived = 0;
		i = 0;
		do :: i < FLYING -> marks[i] = 0; i++ :: else -> break od;
		i = 0 }
	:: d_step { !over && !LEFT -> over = true }
	:: d_step { !expired && (over || LEFT) -> tick() }
	:: d_step { !expired && silence > TICKS -> expired = true; assert(over) } /* the server ends the session */
	:: expired && over -> break
	od
}
