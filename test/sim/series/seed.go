package series

import (
	"iter"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"poolkeeper/test/sim/stage"
)

// Seed is one simulation: what it draws from, and its timeline.
type Seed struct {
	*stage.Timeline
	// Number decides all that is drawn.
	Number uint64

	wanted map[int]bool // the only faults that are made; nil is all
	lived  atomic.Int64
	part   float64 // of its time that the world lives
}

func newSeed(number uint64, wanted map[int]bool) *Seed {
	return &Seed{Timeline: stage.NewTimeline(), Number: number, wanted: wanted, part: 1}
}

// faultStream is the stream that tells when faults come; those behind it are the faults' own.
const faultStream = 1 << 40

// dealStream is the stream that deals the kinds of faults; those behind it are of later rounds.
const dealStream = 1 << 41

// Rand is a source of the seed's; each stream, below 1<<40, is another one.
func (s *Seed) Rand(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(s.Number, stream)) }

// Deal says which of n things is the turn's of a fault: they are shuffled and dealt, so that each comes
// once before any comes again. A draw for each turn would leave some out for hundreds of hours.
func (s *Seed) Deal(f Fault, n int) int {
	round, place := (f.Number-1)/n, (f.Number-1)%n
	return s.Rand(dealStream + uint64(round)).Perm(n)[place]
}

// Fault is the turn of something to go wrong.
type Fault struct {
	// Number is its place in the list, from 1 on.
	Number int
	// Rand is what it draws from. It has no other source, so that it stays the same when others
	// are left out.
	Rand *rand.Rand
}

// Faults are the turns of faults, gap apart on average, until the world is as old as length, or
// something was wrong. It waits for each; those that are left out are passed over.
func (s *Seed) Faults(gap, length time.Duration) iter.Seq[Fault] {
	return func(yield func(Fault) bool) {
		order := s.Rand(faultStream)
		for n, at := 1, s.Age(); ; n++ {
			at = max(at, s.Age()) + time.Duration(order.Int64N(int64(2*gap)))
			<-time.After(min(at, length) - s.Age())
			if at >= length || s.Failed() {
				return
			}
			if s.wanted != nil && !s.wanted[n] {
				continue
			}
			s.Turn(n)
			if !yield(Fault{n, s.Rand(faultStream + uint64(n))}) {
				return
			}
		}
	}
}

// Part is how much of a time that a world would live it does live (-sim.part).
func (s *Seed) Part(d time.Duration) time.Duration { return time.Duration(s.part * float64(d)) }

// Lived notes for how long agents have lived, all together.
func (s *Seed) Lived(d time.Duration) { s.lived.Add(int64(d)) }
