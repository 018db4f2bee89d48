package scale_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"poolkeeper/test/bench"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// instant is a dib-cmd that takes no time: what remains is ours.
const instant = `#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
printf 'QFI\373 image' >"$out.qcow2"
`

// BenchmarkImages measures builders whose images are ready everywhere: how soon the
// first build that is asked for has its record, how long that takes then, how long until it is
// ready everywhere, and what a builder needs.
func BenchmarkImages(b *testing.B) {
	series := []struct{ images, providers, builds, builders int }{
		{10, 5, 2, 1},
		{100, 5, 2, 1},
		{1000, 1, 2, 1},
		{1000, 5, 2, 1},
		{1000, 20, 2, 1}, // 2,000 to 40,000 uploads
		{1000, 20, 5, 1}, // 100,000
		{100, 5, 2, 3},
	}
	for _, size := range series {
		uploads := size.images * size.providers * size.builds
		b.Run(fmt.Sprintf("images=%d/providers=%d/uploads=%d/builders=%d", size.images, size.providers, uploads, size.builders), func(b *testing.B) {
			for b.Loop() {
				s := &imageScene{scene: newScene(b), images: size.images, providers: size.providers}
				s.measure(size.builds, size.builders)
			}
		})
	}
}

type imageScene struct {
	*scene
	images, providers int
}

func (s *imageScene) measure(builds, builders int) {
	b, dir := s.b, s.b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "instant"), []byte(instant), 0o755); err != nil {
		b.Fatal(err)
	}
	s.built(builds)
	raw := s.raw()

	before, start := s.server.Requests(b), time.Now()
	var pids []int
	for n := range builders {
		pids = append(pids, child{
			Server: s.server.Addr(), Host: fmt.Sprintf("builder-%d", n), Dir: dir, Images: s.images, Providers: s.providers, Keep: builds,
		}.spawn(b))
	}
	s.build(0)
	s.ms(time.Since(start), "start-ms")
	<-time.After(time.Second) // the other builders
	b.ReportMetric(float64(s.server.Requests(b)-before), "start-requests")

	var records, served []time.Duration
	for n := range 100 {
		record, ready := s.build(n % s.images)
		records, served = append(records, record), append(served, ready)
	}
	s.ms(bench.Percentile(records, 0.5), "record-p50-ms")
	s.ms(bench.Percentile(records, 0.99), "record-p99-ms")
	s.ms(bench.Percentile(served, 0.5), "served-p50-ms")
	s.ms(bench.Percentile(served, 0.99), "served-p99-ms")
	s.ms(raw, "raw-write-ms")
	<-time.After(2 * time.Second) // what is left to do
	const rest = 5
	before = s.server.Requests(b)
	<-time.After(rest * time.Second)
	b.ReportMetric(float64(s.server.Requests(b)-before)/rest, "rest-requests/s")
	b.ReportMetric(resident(b, pids), "MiB")
	b.ReportMetric(0, "ns/op")
}

// build asks for a build of an image, and returns after how long it had its record, and was
// ready at all providers.
func (s *imageScene) build(n int) (record, ready time.Duration) {
	s.b.Helper()
	ctx := s.b.Context()
	store := zkmodel.NewStore(s.session, nil)
	known, err := s.session.Children(ctx, zkmodel.BuildsPath(image(n)))
	if err != nil {
		s.b.Fatal(err)
	}
	start := time.Now()
	if err := store.RequestBuild(ctx, image(n)); err != nil {
		s.b.Fatal(err)
	}
	var fresh string
	s.until(func() bool {
		names, err := s.session.Children(ctx, zkmodel.BuildsPath(image(n)))
		if err != nil {
			s.b.Fatal(err)
		}
		for _, name := range names {
			if name != path.Base(zkmodel.BuildsLockPath("")) && !slices.Contains(known, name) {
				fresh = name
			}
		}
		return fresh != ""
	}, "a record of the build of "+image(n))
	record = time.Since(start)
	s.until(func() bool { return s.everywhere(store, image(n), fresh) }, image(n)+"-"+fresh+" at all providers")
	return record, time.Since(start)
}

// everywhere reports whether a build is ready at all providers.
func (s *imageScene) everywhere(store *zkmodel.Store, name, build string) bool {
	i, err := store.Image(s.b.Context(), name)
	if err != nil {
		s.b.Fatal(err)
	}
	for _, t := range i.Builds {
		if t.ID != build {
			continue
		}
		ready := 0
		for _, u := range t.Uploads {
			if u.State == zkmodel.UploadReady {
				ready++
			}
		}
		return ready == s.providers && i.BuildRequested == nil
	}
	return false
}

// built makes the records of builds that another host made, each ready everywhere.
func (s *imageScene) built(builds int) {
	s.b.Helper()
	now := zkmodel.EpochOf(time.Now())
	made := &zkmodel.Build{Builder: "other", BuilderID: "other", Formats: zkmodel.Formats{"qcow2"}, Username: "zuul"}
	made.State, made.StateTime = zkmodel.BuildReady, now
	build, err := made.Encode()
	if err != nil {
		s.b.Fatal(err)
	}
	if err := s.session.EnsurePath(s.b.Context(), zkmodel.ImagesRoot); err != nil {
		s.b.Fatal(err)
	}
	var ops []recipe.Op
	create := func(at string, data []byte) { ops = append(ops, recipe.OpCreate(at, data, recipe.Persistent)) }
	for n := range s.images {
		name := image(n)
		create(zkmodel.ImagePath(name), nil)
		create(zkmodel.BuildsPath(name), nil)
		for k := range builds {
			id := fmt.Sprintf("%010d", k)
			create(zkmodel.BuildPath(name, id), build)
			create(zkmodel.ProvidersPath(name, id), nil)
			for p := range s.providers {
				folder := zkmodel.UploadsPath(name, id, provider(p))
				create(path.Dir(folder), nil)
				create(folder, nil)
				create(zkmodel.UploadPath(name, id, provider(p), "0000000000"), s.upload(name, id, now))
			}
		}
	}
	s.put(ops)
}

func (s *imageScene) upload(name, build string, now zkmodel.Epoch) []byte {
	s.b.Helper()
	u := &zkmodel.Upload{Format: "qcow2", Username: "zuul", ExternalName: name + "-" + build, ExternalID: zkmodel.TextValue(name + build)}
	u.State, u.StateTime = zkmodel.UploadReady, now
	data, err := u.Encode()
	if err != nil {
		s.b.Fatal(err)
	}
	return data
}
