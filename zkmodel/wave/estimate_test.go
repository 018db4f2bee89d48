package wave_test

import (
	"strings"
	"testing"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// Mistakes: an estimate from a build that failed, or from a clock that went back; one image
// that nothing is known of which hides the others.
func TestEstimate(t *testing.T) {
	made := func(state zkmodel.BuildState, took time.Duration, size int64) *zkmodel.BuildTree {
		return &zkmodel.BuildTree{
			Build: &zkmodel.Build{
				State: state, Stat: recipe.Stat{Ctime: noon}, StateTime: zkmodel.EpochOf(noon.Add(took)),
				Files: map[string]zkmodel.ImageFile{"raw": {Size: size}, "qcow2": {Size: size}},
			},
			Uploads: []*zkmodel.Upload{
				{State: zkmodel.UploadReady, Stat: recipe.Stat{Ctime: noon}, StateTime: zkmodel.EpochOf(noon.Add(time.Minute))},
				{State: zkmodel.UploadFailed, Stat: recipe.Stat{Ctime: noon}, StateTime: zkmodel.EpochOf(noon.Add(time.Hour))},
			},
		}
	}
	image := &zkmodel.Image{Builds: []*zkmodel.BuildTree{
		made(zkmodel.BuildReady, time.Hour, 1<<40), made(zkmodel.BuildReady, 10*time.Minute, 1<<30), made(zkmodel.BuildFailed, time.Second, 1),
	}}
	if got := wave.EstimateOf(image).String(); got != "build 10m0s, upload 1m0s, 2.0 GiB" {
		t.Errorf("estimate %q", got)
	}
	back := &zkmodel.Image{Builds: []*zkmodel.BuildTree{made(zkmodel.BuildReady, -time.Hour, 1)}}
	if e := wave.EstimateOf(back); e.Build != 0 {
		t.Errorf("a build took %d s", e.Build)
	}
	if e := wave.EstimateOf(&zkmodel.Image{}); e != nil || e.String() != "" {
		t.Errorf("an estimate of nothing: %v", e)
	}
	sum := &wave.Estimate{Build: 5400, Bytes: 3 << 30, Unknown: 2, Workers: 3}
	if got := sum.String(); got != "build 1h30m0s (30m0s with 3 workers), 3.0 GiB, 2 images not known" {
		t.Errorf("sum %q", got)
	}
}

// Mistakes: space that a builder must leave, or that is spoken for, given away; a builder
// that does not build the image counted; one that does not tell taken for a full one.
func TestLedger(t *testing.T) {
	const gib = 1 << 30
	big := wave.Host{Name: "big", Images: []string{"b"}, Free: 100 * gib, Factor: 2}
	small := wave.Host{Name: "small", Images: []string{"a", "b"}, Free: 10 * gib, Reserve: 4 * gib, Factor: 2}
	silent := wave.Host{Name: "silent", Images: []string{"a"}, Free: -1, Factor: 2}
	for name, tc := range map[string]struct {
		hosts []wave.Host
		taken int64
		bytes int64
		full  string
	}{
		"room":              {[]wave.Host{big, small}, 0, 3 * gib, ""},
		"the reserve":       {[]wave.Host{big, small}, 0, 4 * gib, "small has the most, 10 GiB, of which 4.0 GiB are spoken for; about 8.0 GiB are needed"},
		"asked for already": {[]wave.Host{big, small}, gib, 3 * gib, "5.0 GiB are spoken for"},
		"nobody knows":      {[]wave.Host{small, silent}, 0, 50 * gib, ""},
		"nobody builds it":  {[]wave.Host{big}, 0, 50 * gib, ""},
		"the first build":   {[]wave.Host{small}, 6 * gib, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := wave.NewLedger(tc.hosts)
			l.Take("a", tc.taken)
			if got := l.Full("a", tc.bytes); got == "" != (tc.full == "") || !strings.Contains(got, tc.full) {
				t.Errorf("%q", got)
			}
		})
	}
}
