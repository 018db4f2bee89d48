package wave

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/wire"
)

// Estimate is what a build of an image takes, as earlier ones did; zero is not known.
type Estimate struct {
	Bytes  int64 `json:"bytes,omitempty"`  // of its files
	Build  int64 `json:"build,omitempty"`  // seconds
	Upload int64 `json:"upload,omitempty"` // seconds that the slowest provider took
	// Of a wave, the sums over its jobs: how many are not known, and builds at a time.
	Unknown int `json:"unknown,omitempty"`
	Workers int `json:"workers,omitempty"`
}

// EstimateOf looks at the newest ready build of an image; nil when it has none.
func EstimateOf(image *zkmodel.Image) *Estimate {
	for _, b := range slices.Backward(image.Builds) {
		if b.Broken == nil && b.State == zkmodel.BuildReady {
			return taken(b)
		}
	}
	return nil
}

// taken is what a ready build has taken.
func taken(b *zkmodel.BuildTree) *Estimate {
	e := &Estimate{Build: seconds(b.Stat.Ctime, b.StateTime)}
	for _, f := range b.Files {
		e.Bytes += f.Size
	}
	for _, u := range b.Uploads {
		if u.Broken == nil && u.State == zkmodel.UploadReady {
			e.Upload = max(e.Upload, seconds(u.Stat.Ctime, u.StateTime))
		}
	}
	return e
}

func seconds(from time.Time, to wire.Epoch) int64 {
	return max(0, int64(to.Time().Sub(from).Round(time.Second)/time.Second))
}

// add sums up what the jobs of a wave take.
func (e *Estimate) add(job *Estimate) {
	if job == nil {
		e.Unknown++
		return
	}
	e.Bytes += job.Bytes
	e.Build += job.Build
	e.Upload += job.Upload
}

// String shows it to people.
func (e *Estimate) String() string {
	if e == nil {
		return ""
	}
	var parts []string
	span := func(what string, s int64) {
		if s > 0 {
			parts = append(parts, what+" "+(time.Duration(s)*time.Second).String())
		}
	}
	span("build", e.Build)
	if e.Workers > 1 && e.Build > 0 {
		parts[0] += fmt.Sprintf(" (%s with %d workers)", time.Duration(e.Build/int64(e.Workers))*time.Second, e.Workers)
	}
	span("upload", e.Upload)
	if e.Bytes > 0 {
		parts = append(parts, humanize.IBytes(uint64(e.Bytes)))
	}
	if e.Unknown > 0 {
		parts = append(parts, fmt.Sprintf("%d images not known", e.Unknown))
	}
	return strings.Join(parts, ", ")
}

// Estimate sums up what jobs of the wave take.
func (d *Drive) Estimate(of func(image string) *Estimate, workers int) *Estimate {
	sum := &Estimate{Workers: min(workers, len(d.Jobs))}
	for _, job := range d.Jobs {
		sum.add(of(job.Image))
	}
	if d.Wave.MaxParallel > 0 {
		sum.Workers = min(sum.Workers, d.Wave.MaxParallel)
	}
	return sum
}
