package largesite

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/overview"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// What comes into service step by step: the image that is tried in the first provider, and the one
// of which a build is the canary in the third.
const (
	tried  = 14
	canary = 5
)

// rollouts makes two waves, a version of the fleet's configuration that one daemon does not run, and
// what clouds allow.
func (s *Site) rollouts() {
	put := func(at string, record any) {
		text, _ := json.Marshal(record) // it has nothing that JSON cannot have
		s.Records[at] = string(text)
	}
	began := s.Now.Add(-70 * time.Minute)
	for n, w := range []wave.Wave{
		{ID: "openssl-2026-11", By: "ann@ops1", Reason: "CVE-2026-1234", Jobs: s.Images},
		{ID: "weekly-47", Schedule: "weekly", By: "schedule weekly", Jobs: s.Images},
	} {
		w.Order, w.Until, w.MaxFailures, w.Token = wave.ByFreshness, wave.UntilUploaded, wave.DefaultMaxFailures, fmt.Sprintf("%032x", n)
		put(wave.Root+"/requests/"+w.ID, w)
		status := wave.Status{State: wave.Processing, StateTime: began, Began: &began, Driver: "nb01", Counts: map[wave.State]int{
			wave.Completed: s.Images / 2, wave.Failed: s.Images / 10, wave.Processing: 3, wave.Held: s.Images - s.Images/2 - s.Images/10 - 3,
		}}
		if n > 0 {
			status = wave.Status{State: wave.Pending, StateTime: began, Counts: map[wave.State]int{wave.Pending: s.Images}}
		}
		put(wave.Root+"/status/"+w.ID, status)
	}
	current := &fleet.Version{
		Number: 8, Predecessor: "none", Digest: fmt.Sprintf("%064x", 8), Size: 9000, Time: s.Now.Add(-20 * time.Minute).Unix(), By: "ben@ops1", Message: "two more labels", Blob: "b", Shards: 1,
	}
	put(fleet.CurrentPath, current)
	for n, of := range []string{"builder nb01", "builder nb02", "launcher nl01", "launcher nl02"} {
		kind, host, _ := strings.Cut(of, " ")
		m := fleet.Member{Kind: kind, Host: host + ".example.org", Number: 8, ID: current.ID(), Since: s.Now.Add(-19 * time.Minute).Unix()}
		if n == 1 {
			m.Number, m.ID, m.Refused, m.Reason = 7, "before", 8, "labels[3].name: gpu-large is there twice"
		}
		put(fmt.Sprintf("%s/%s-%s-%010d", fleet.MembersPath, kind, m.Host, n), m)
	}
	for p := range s.Providers {
		most := max(100, 20*s.Nodes)
		if p == 1 { // which is nearly used up
			most = 8*s.Nodes/max(1, s.Providers) + 4
		}
		put(zkmodel.LimitsPath(Provider(p)), map[string]int{"instances": 10 * max(10, s.Nodes), "cores": most})
	}
}

// canaryOf is the record of the canary; what builds were made by is known once they are stored.
func canaryOf(promoted, trial *zkmodel.Build, upload *zkmodel.Upload, now time.Time) *zkmodel.Canary {
	c := zkmodel.NewCanary(upload.Provider, promoted.Image, promoted).Begin(upload, trial, zkmodel.EpochOf(now.Add(-90*time.Minute)))
	c.Trial.Nodes = 4
	return c
}

// hasCanary reports whether the site is large enough for one.
func (s *Site) hasCanary() bool { return s.Images > canary && s.Providers > 2 }

// storeCanary writes the record of the canary.
func (s *Site) storeCanary(ctx context.Context, session *recipe.Session) error {
	if !s.hasCanary() {
		return nil
	}
	var builds []*zkmodel.Build
	for _, id := range []string{"0000000006", "0000000007"} {
		data, stat, err := session.Get(ctx, zkmodel.BuildPath(Image(canary), id))
		if err != nil {
			return fmt.Errorf("read build of the large site: %w", err)
		}
		builds = append(builds, zkmodel.DecodeBuild(Image(canary), id, data, stat))
	}
	key := zkmodel.UploadKey{Image: Image(canary), Build: "0000000007", Provider: Provider(2), ID: "0000000001"}
	data, stat, err := session.Get(ctx, key.Path())
	if err != nil {
		return fmt.Errorf("read upload of the large site: %w", err)
	}
	record, err := json.Marshal(canaryOf(builds[0], builds[1], zkmodel.DecodeUpload(key, data, stat), s.Now))
	if err != nil {
		return fmt.Errorf("write canary of the large site: %w", err)
	}
	return Put(ctx, session, zkmodel.CanaryPath(key.Provider, key.Image), string(record))
}

// judge gives the image of the canary its record.
func (s *Site) judge(t *Tree) {
	for _, image := range t.Images {
		if image.Name != Image(canary) || !s.hasCanary() {
			continue
		}
		before, newest := image.Build("0000000006"), image.Build("0000000007")
		at := slices.IndexFunc(newest.Uploads, func(u *zkmodel.Upload) bool { return u.Provider == Provider(2) })
		image.Canaries = append(image.Canaries, canaryOf(before.Build, newest.Build, newest.Uploads[at], s.Now))
	}
}

// beside decodes what no mirror has.
func (s *Site) beside() *overview.Beside {
	b := &overview.Beside{Limits: map[string]map[string]int{}}
	get := func(at string, into any) { _ = json.Unmarshal([]byte(s.Records[at]), into) } // as rollouts has made it
	for _, at := range slices.Sorted(maps.Keys(s.Records)) {
		switch folder, name := path.Split(at); folder {
		case wave.Root + "/requests/":
			e := &wave.Entry{}
			get(at, &e.Wave)
			get(wave.Root+"/status/"+name, &e.Status)
			e.ID, e.Stat.Ctime = name, s.Now.Add(-70*time.Minute)
			b.Waves = append(b.Waves, e)
		case fleet.MembersPath + "/":
			m := fleet.Member{Name: name}
			get(at, &m)
			b.Members = append(b.Members, m)
		case zkmodel.LimitsRoot + "/":
			limits := map[string]int{}
			get(at, &limits)
			b.Limits[name] = limits
		}
	}
	b.Current = &fleet.Version{}
	get(fleet.CurrentPath, b.Current)
	return b
}
