package plan

import (
	"hash/fnv"
	"math"
	"time"

	"poolkeeper/zkmodel"
)

// Backoff is how long to wait after failures in a row: First after one, twice
// as long after each further one, at most Max.
type Backoff struct {
	First, Max time.Duration
}

// spread is the part of a waiting time that differs between subjects.
const spread = 0.2

// After is the time to wait after n failures. It is up to a tenth longer or
// shorter for one seed than for another, and the same for all builders.
func (b Backoff) After(n int, seed string) time.Duration {
	if n <= 0 {
		return 0
	}
	wait := math.Min(float64(b.First)*math.Pow(2, float64(min(n, 60)-1)), float64(b.Max))
	return time.Duration(wait * (1 - spread/2 + spread*share(seed)))
}

// clocksDiffer is by how much the clocks of two hosts may differ.
const clocksDiffer = time.Minute

// MostDrift is how wrong a host's clock may be for it to delete anything by age.
const MostDrift = time.Minute

// Adrift reports whether a clock that is off by so much is wrong.
func Adrift(off time.Duration) bool { return off.Abs() > MostDrift }

// since is when a record got its state. A time of the future is not believed: it is
// noLater then, see zkmodel.NoLater.
func since(state zkmodel.Epoch, noLater time.Time, now time.Time) time.Time {
	if told := state.Time(); !told.After(now.Add(clocksDiffer)) {
		return told
	}
	return noLater
}

// BuildAgain is when a failed build is made again if nobody asks for it sooner.
func (p Policy) BuildAgain(b *zkmodel.Build, now time.Time) time.Time {
	return since(b.StateTime, zkmodel.NoLater(b.StateTime, b.Stat), now).Add(p.BuildRetry.After(max(1, b.Failures), b.Name()))
}

// UploadAgain is when a failed upload is tried again.
func (p Policy) UploadAgain(u *zkmodel.Upload, now time.Time) time.Time {
	return since(u.StateTime, zkmodel.NoLater(u.StateTime, u.Stat), now).Add(p.UploadRetry.After(max(1, u.Failures), u.Path()))
}

// share is a number in [0, 1) that depends on the seed alone.
func share(seed string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed)) // never fails
	// FNV mixes its last bytes badly into the high bits, where we look.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}
