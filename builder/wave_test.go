package builder

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"poolkeeper/builder/waves"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// wave makes a wave of all images of the site.
func (s *site) wave(id string, parallel int, until wave.Until) *wave.Store {
	s.t.Helper()
	store := wave.NewStore(s.store.Session())
	jobs, err := waves.Jobs(s.config, waves.Wish{All: true}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	w := &wave.Wave{ID: id, Order: wave.ByPriority, MaxParallel: parallel, Until: until, MaxFailures: "0"}
	if made, err := store.Create(s.t.Context(), w, jobs); err != nil || !made {
		s.t.Fatalf("%v, %v", made, err)
	}
	return store
}

// waveReport waits for what has come of a wave.
func (s *site) waveReport(store *wave.Store, id string, patience time.Duration) *wave.Report {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	data, err := store.Queue().Wait(ctx, id, "test")
	if err != nil {
		e, _ := store.Wave(s.t.Context(), id)
		s.t.Fatalf("%v; the wave is %+v", err, e)
	}
	r, err := wave.ParseReport(data)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// Mistakes: a wave of three images and two providers that is lost when the builder that
// drives it is killed, at whatever step; an image that is built twice for it.
func TestKilledDriverOfAWave(t *testing.T) {
	t.Parallel()
	for _, at := range waves.Moments() {
		for _, nth := range []int{1, 3} {
			if nth > 1 && at != waves.Applied {
				continue
			}
			t.Run(fmt.Sprintf("%s %d", at, nth), func(t *testing.T) {
				t.Parallel()
				s, c := newSiteOf(t)
				c.Images, c.Clouds = 3, 2
				s.config = c.config()
				c.Host = "two"
				first := c.spawn(t)
				s.settled("two")
				first.stop()
				dying := c
				dying.Host, dying.Unfit, dying.WaveAt, dying.WaveNth = "one", true, at, nth
				store := s.wave("w", 1, wave.UntilUploaded)
				one := dying.spawn(t)
				s.eventually("it drives the wave, or has died of it", func() bool {
					select {
					case <-one.ended:
						return true
					default:
					}
					line, err := recipe.Contenders(t.Context(), s.store.Session(), wave.Root+"/locks/w")
					return err == nil && len(line) == 1 && line[0].Identifier == "one"
				})
				c.spawn(t)
				one.dies(t)
				r := s.waveReport(store, "w", time.Minute)
				if r.State != wave.Completed || len(r.Jobs) != 3 {
					t.Errorf("report %+v", r)
				}
				s.settled("two")
				for _, job := range r.Jobs {
					var ids []string
					for _, b := range s.builds(job.Image, zkmodel.BuildReady) {
						ids = append(ids, b.ID)
					}
					if !slices.Equal(ids, []string{"0000000001", "0000000002"}) || job.Build != "0000000002" || len(job.Uploads) != 2 {
						t.Errorf("%s has builds %q: %+v", job.Image, ids, job)
					}
				}
			})
		}
	}
}

// BenchmarkWave is a wave of 1,000 instant builds on three builders, and 1,000 plain flags
// on the same, one after the other: what a wave costs beyond its builds.
func BenchmarkWave(b *testing.B) {
	const images = 1000
	s, c := newSiteOf(b)
	// Each round removes the builds of the one before, the first as well.
	c.Images, c.Keep, c.Session = images, 1, 10*time.Second
	for _, host := range []string{"one", "two", "three"} {
		c.Host = host
		c.spawn(b)
	}
	s.config = c.config()
	mirror := mirrorOf(b, s)
	changes := mirror.SubscribeImages()
	defer changes.Close()
	// built waits until each image has a ready build that began after a transaction.
	built := func(since int64) {
		deadline := time.After(10 * time.Minute)
		missing := map[string]bool{}
		for _, image := range s.config.DiskImages {
			missing[image.Name] = true
		}
		for names := mirror.ImageNames(); ; {
			for _, name := range names {
				if missing[name] && waves.NewestReady(mirror.Image(name)) > since {
					delete(missing, name)
				}
			}
			if len(missing) == 0 {
				return
			}
			select {
			case <-changes.C():
				names = changes.Take()
			case <-deadline:
				b.Fatalf("%d images are not built", len(missing))
			}
		}
	}
	ltime := func() int64 {
		at, err := s.store.Ltime(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return at
	}
	atRest := func() {
		s.eventually("rest", func() bool {
			return !slices.ContainsFunc(mirror.Images(), func(i *zkmodel.Image) bool { return i.BuildRequested != nil || i.BuildsLocked })
		})
	}
	asked := func() time.Duration {
		atRest()
		since, began := ltime(), time.Now()
		for _, image := range s.config.DiskImages {
			if err := s.store.RequestBuild(b.Context(), image.Name); err != nil {
				b.Fatal(err)
			}
		}
		built(since)
		return time.Since(began)
	}
	waved := func(id string) time.Duration {
		atRest()
		began := time.Now()
		r := s.waveReport(s.wave(id, 0, wave.UntilBuilt), id, 10*time.Minute)
		if r.State != wave.Completed {
			b.Fatalf("%s: %v", r.State, r.Counts)
		}
		return time.Since(began)
	}
	built(0)
	// They take turns at being the first: a machine that grows slower favours neither.
	var flags, took time.Duration
	for n := 0; b.Loop(); n++ {
		id := fmt.Sprintf("w%d", n)
		if n%2 == 0 {
			flags += asked()
			took += waved(id)
		} else {
			took += waved(id)
			flags += asked()
		}
	}
	b.ReportMetric(flags.Seconds()/float64(b.N), "flags-s")
	b.ReportMetric(took.Seconds()/float64(b.N), "wave-s")
	b.ReportMetric(took.Seconds()/flags.Seconds(), "wave/flags")
}
