package plan

import (
	"math"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/rebuild"
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
	return time.Duration(wait * (1 - spread/2 + spread*rebuild.Share(seed)))
}

// MostDrift is how wrong a host's clock may be for it to delete anything by age.
const MostDrift = time.Minute

// Adrift reports whether a clock that is off by so much is wrong.
func Adrift(off time.Duration) bool { return off.Abs() > MostDrift }

// BuildAgain is when a failed build is made again if nobody asks for it sooner.
func (p Policy) BuildAgain(b *zkmodel.Build, now time.Time) time.Time {
	return rebuild.Since(b.StateTime, zkmodel.NoLater(b.StateTime, b.Stat), now).Add(p.BuildRetry.After(max(1, b.Failures), b.Name()))
}

// UploadAgain is when a failed upload is tried again: as its number of failures says, and not before its retry_at, which is
// later if the cloud refused the image or asked for a pause. A retry_at more than longestPause after the failure is wrong.
func (p Policy) UploadAgain(u *zkmodel.Upload, now time.Time) time.Time {
	failed := rebuild.Since(u.StateTime, zkmodel.NoLater(u.StateTime, u.Stat), now)
	again := failed.Add(p.UploadRetry.After(max(1, u.Failures), u.Path()))
	if at := u.RetryAt.Time(); u.RetryAt != 0 && at.After(again) && at.Sub(failed) <= longestPause {
		return at
	}
	return again
}

// longestPause bounds what a retry_at of an upload is honored for.
const longestPause = 24 * time.Hour

// RefusedUpload is how long to wait before an image that a cloud refused as such is sent again.
func (p Policy) RefusedUpload(u *zkmodel.Upload) time.Duration {
	return Backoff{First: 40 * p.UploadRetry.First, Max: 4 * p.UploadRetry.Max}.After(max(1, u.Failures), u.Path())
}
