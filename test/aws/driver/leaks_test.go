package driver_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/providers"
	"poolkeeper/providers/aws"
	"poolkeeper/test/aws/endpoint"
)

// later is a clock that goes on by leaps.
type later struct{ by atomic.Int64 }

func (l *later) Now() time.Time { return time.Now().Add(time.Duration(l.by.Load())) }

func (l *later) AfterFunc(d time.Duration, f func()) clock.Stopper { return time.AfterFunc(d, f) }

func (l *later) leap(d time.Duration) { l.by.Add(int64(d)) }

// whose are the marks of what an installation's provider has left.
func whose(provider, site, mark string) map[string]string {
	return map[string]string{providers.MetaProvider: provider, providers.MetaSite: site, mark: "0000000007", "Name": "left"}
}

// leftovers leaves one of each kind, and tells how to see whether it is there still.
func leftovers(e *endpoint.Endpoint, provider, site string) map[string]func() bool {
	node, upload := whose(provider, site, providers.MetaNode), whose(provider, site, providers.MetaUpload)
	key := "poolkeeper/" + provider + "-" + site + ".raw"
	e.LeaveObject(key, maps.Clone(upload))
	left := map[string]func() bool{"objects": func() bool { return slices.Contains(e.Objects(e.Bucket), key) }}
	for kind, id := range map[string]string{
		"volumes": e.LeaveVolume(maps.Clone(node)), "hosts": e.LeaveHost(maps.Clone(node)), "snapshots": e.LeaveSnapshot(maps.Clone(upload)),
		"launch templates": e.LeaveTemplate("poolkeeper-"+provider+site, whose(provider, site, "poolkeeper_template")),
	} {
		left[kind] = func() bool { return e.Exists(id) }
	}
	return left
}

// clean looks for leaks once.
func clean(ctx context.Context, t *testing.T, p *aws.Provider) map[string]int {
	t.Helper()
	deleted, err := p.CleanLeaks(ctx, "site")
	if err != nil {
		t.Fatal(err)
	}
	return deleted
}

func gone(left map[string]func() bool) []string {
	var kinds []string
	for kind, there := range left {
		if !there() {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// What our installation has left is found by its tags, in lists of many pages, and really deleted, when it was found twice, long
// enough apart; what is another's, or is used, never.
func TestLeaksAreDeleted(t *testing.T) {
	e := endpoint.Start(t, endpoint.Options{})
	e.Env(t)
	e.Pages(1)
	cfg := section(e, configs.AWSImportSnapshot)
	cfg.ImageUploadTimeout = 4 * time.Hour
	p := open(t, cfg)
	defer p.Close() //nolint:errcheck // nothing is written
	now := &later{}
	ctx := clock.With(within(t), clock.From(now))
	ours, others := leftovers(e, "amazon", "site"), map[string]map[string]func() bool{
		"another installation's": leftovers(e, "amazon", "elsewhere"), "another provider's": leftovers(e, "azure", "site"),
	}
	used := e.LeaveSnapshot(whose("amazon", "site", providers.MetaUpload))
	image := e.LeaveImage("used", used, whose("amazon", "site", providers.MetaUpload))
	plain := []string{e.LeaveVolume(map[string]string{}), e.LeaveSnapshot(map[string]string{}), e.LeaveHost(map[string]string{}), e.LeaveTemplate("theirs", map[string]string{})}
	e.LeaveObject("poolkeeper/plain", map[string]string{})
	node, err := p.CreateNode(ctx, spec(e, "main", "small", 1)) // whose volume is in use
	if err != nil {
		t.Fatal(err)
	}
	volumes := len(e.Volumes())
	for _, step := range []struct {
		after time.Duration
		want  map[string]int
	}{
		{0, nil},
		{time.Minute, nil},
		{2 * time.Minute, map[string]int{"volumes": 1, "hosts": 1}},
		{4 * time.Hour, nil},
		{3 * time.Hour, map[string]int{"snapshots": 1, "objects": 1, "launch templates": 1}},
		{24 * time.Hour, nil},
	} {
		now.leap(step.after)
		if deleted := clean(ctx, t, p); !maps.Equal(deleted, step.want) {
			t.Errorf("after %s more are deleted %v, want %v", step.after, deleted, step.want)
		}
	}
	if kinds := gone(ours); len(kinds) != 5 {
		t.Errorf("deleted are %v only", kinds)
	}
	for name, left := range others {
		if kinds := gone(left); len(kinds) > 0 {
			t.Errorf("%s %v are deleted", name, kinds)
		}
	}
	for _, id := range append(plain, used, image, node) {
		if !e.Exists(id) {
			t.Errorf("%s is deleted", id)
		}
	}
	if len(e.Volumes()) != volumes-1 || !slices.Contains(e.Objects(e.Bucket), "poolkeeper/plain") {
		t.Errorf("volumes %d of %d, objects %v", len(e.Volumes()), volumes, e.Objects(e.Bucket))
	}
}

// Parts that a builder sent before it died are in no list of objects, and cost: the upload is ended, when none can be under way so long.
// Those of others are left alone, whatever their keys begin with.
func TestUploadsInPartsThatNobodyEnds(t *testing.T) {
	e, _ := amazon(t, configs.AWSImportSnapshot)
	p := openPatient(t, section(e, configs.AWSImportSnapshot), 10*time.Millisecond)
	defer p.Close() //nolint:errcheck // nothing is written
	e.Pages(1)
	now := &later{}
	ctx := clock.With(within(t), clock.From(now))
	begun := func(site string) string {
		ctx, cancel := context.WithCancel(ctx)
		path := filepath.Join(t.TempDir(), "tiny-0000000001.raw")
		if err := os.WriteFile(path, []byte("image"), 0o600); err != nil {
			t.Fatal(err)
		}
		before := e.Uploads()
		e.Fail("UploadPart", 100, "InternalError")
		e.Fail("AbortMultipartUpload", 100, "InternalError") // as it is when nobody is there to end it
		_, err := p.UploadImage(ctx, providers.ImageUpload{Name: "tiny", Path: path, Format: "raw", Size: 5, Verified: true, Metadata: whose("amazon", site, providers.MetaUpload)})
		cancel()
		if err == nil {
			t.Fatal("an upload whose parts are refused is done")
		}
		e.Forgive()
		return slices.DeleteFunc(e.Uploads(), func(key string) bool { return slices.Contains(before, key) })[0]
	}
	begun("site")
	begun("site")
	theirs := []string{begun("elsewhere")}
	for _, key := range []string{"poolkeeper/plain", "images/ours.raw"} {
		e.LeaveParts(key)
		theirs = append(theirs, key)
	}
	for _, after := range []time.Duration{0, 5 * time.Hour} {
		now.leap(after)
		if deleted := clean(ctx, t, p); len(deleted) > 0 || len(e.Uploads()) != 5 {
			t.Errorf("after %s are deleted %v", after, deleted)
		}
	}
	now.leap(9 * 24 * time.Hour)
	if deleted := clean(ctx, t, p); deleted["uploads in parts"] != 2 {
		t.Errorf("%v are deleted", deleted)
	}
	slices.Sort(theirs)
	if left := e.Uploads(); !slices.Equal(left, theirs) {
		t.Errorf("left are %v, want %v", left, theirs)
	}
}

// A list that does not show something yet, or that failed, says nothing.
func TestLeaksThatListsTellWrong(t *testing.T) {
	e, p := amazon(t, configs.AWSImportSnapshot)
	now := &later{}
	ctx := clock.With(within(t), clock.From(now))
	volume := e.LeaveVolume(whose("amazon", "site", providers.MetaNode))
	clean(ctx, t, p)
	now.leap(time.Hour)
	e.Fail("DescribeVolumes", 1, "AuthFailure")
	if deleted, err := p.CleanLeaks(ctx, "site"); err == nil || len(deleted) > 0 || !e.Exists(volume) {
		t.Errorf("by a list that failed are deleted %v, %v", deleted, err)
	}
	e.Lag(2 * time.Hour)
	if deleted := clean(ctx, t, p); len(deleted) > 0 {
		t.Errorf("by a list that shows nothing are deleted %v", deleted)
	}
	e.Lag(0)
	if deleted := clean(ctx, t, p); len(deleted) > 0 || !e.Exists(volume) {
		t.Errorf("found once since it was not shown: %v are deleted", deleted)
	}
	now.leap(time.Hour)
	if deleted := clean(ctx, t, p); deleted["volumes"] != 1 || e.Exists(volume) {
		t.Errorf("found twice: %v are deleted", deleted)
	}
}

// What a list shows still that was deleted a moment ago is not counted again.
func TestLeaksThatAreShownStill(t *testing.T) {
	e, p := amazon(t, configs.AWSImportSnapshot)
	now := &later{}
	ctx := clock.With(within(t), clock.From(now))
	late := e.LeaveVolume(whose("amazon", "site", providers.MetaNode))
	e.Lag(time.Minute)
	clean(ctx, t, p)
	now.leap(time.Hour)
	if deleted := clean(ctx, t, p); deleted["volumes"] != 1 || e.Exists(late) {
		t.Errorf("found twice: %v are deleted", deleted)
	}
	if deleted := clean(ctx, t, p); len(deleted) > 0 {
		t.Errorf("what is shown still is deleted again: %v", deleted)
	}
}

// A host that Amazon keeps, as those of Apple's machines for a day, is no deletion, and is tried until it goes.
func TestHostsThatAreKept(t *testing.T) {
	e, p := amazon(t, configs.AWSImportSnapshot)
	now := &later{}
	ctx := clock.With(within(t), clock.From(now))
	host := e.LeaveHost(whose("amazon", "site", providers.MetaNode))
	e.KeepHosts(true)
	for range 3 {
		if deleted := clean(ctx, t, p); len(deleted) > 0 {
			t.Errorf("%v are deleted", deleted)
		}
		now.leap(time.Hour)
	}
	e.KeepHosts(false)
	if deleted := clean(ctx, t, p); deleted["hosts"] != 1 || e.Exists(host) {
		t.Errorf("%v are deleted", deleted)
	}
}

// Machines and images of ours are listed for the daemons, which compare them with their records: each page, those of other
// installations with their marks, none of other providers, and they are really deleted.
func TestMachinesAndImagesAreListed(t *testing.T) {
	e, p := amazon(t, configs.AWSImportImage)
	e.Pages(1)
	ctx := within(t)
	var want []string
	for n, site := range []string{"site", "elsewhere"} {
		s := spec(e, "main", "small", n)
		s.Metadata[providers.MetaSite] = site
		id, err := p.CreateNode(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, id+" "+site)
		want = append(want, e.LeaveImage("left-"+site, e.LeaveSnapshot(map[string]string{}), whose("amazon", site, providers.MetaUpload))+" "+site)
	}
	e.LeaveImage("azure", e.LeaveSnapshot(map[string]string{}), whose("azure", "site", providers.MetaUpload))
	e.LeaveImage("plain", e.LeaveSnapshot(map[string]string{}), map[string]string{})
	nodes, err := p.ListNodes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	images, err := p.ListImages(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range nodes {
		got = append(got, n.ExternalID+" "+n.Metadata[providers.MetaSite])
	}
	for _, i := range images {
		got = append(got, i.ExternalID+" "+i.Metadata[providers.MetaSite])
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("listed are %v, want %v", got, want)
	}
	for _, one := range got {
		id, _, _ := strings.Cut(one, " ")
		remove := p.DeleteNode
		if strings.HasPrefix(id, "ami-") {
			remove = p.DeleteImage
		}
		if err := remove(ctx, id); err != nil || strings.HasPrefix(id, "ami-") && e.Exists(id) {
			t.Errorf("delete %s: %v", id, err)
		}
	}
	if len(running(e)) > 0 || len(e.Images()) != 2 || len(e.Snapshots()) != 2 {
		t.Errorf("left are %d machines, %d images, %d snapshots", len(running(e)), len(e.Images()), len(e.Snapshots()))
	}
}

// What an import has made is found although its builder died before it could give it tags: by those of the import itself. Another
// installation's is left alone, and so is what another program has imported.
func TestImportsWithoutTags(t *testing.T) {
	for _, method := range []string{configs.AWSImportSnapshot, configs.AWSImportImage} {
		t.Run(method, func(t *testing.T) {
			e, p := amazon(t, method)
			e.Pages(1)
			now := &later{}
			ctx := clock.With(within(t), clock.From(now))
			theirs := e.LeaveImport(method == configs.AWSImportImage, whose("amazon", "elsewhere", providers.MetaUpload))
			plain := e.LeaveImport(method == configs.AWSImportImage, nil)
			ours := e.LeaveImport(method == configs.AWSImportImage, whose("amazon", "site", providers.MetaUpload))
			images, err := p.ListImages(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range images {
				if i.Metadata[providers.MetaSite] != "site" {
					continue // which daemons leave alone
				}
				if i.ExternalID != ours[0] || i.Metadata[providers.MetaUpload] == "" {
					t.Errorf("listed is %+v", i)
				}
				if err := p.DeleteImage(ctx, i.ExternalID); err != nil {
					t.Error(err)
				}
			}
			clean(ctx, t, p)
			now.leap(9 * 24 * time.Hour)
			clean(ctx, t, p)
			for _, id := range ours {
				if e.Exists(id) {
					t.Errorf("%s is left", id)
				}
			}
			for _, id := range append(theirs, plain...) {
				if !e.Exists(id) {
					t.Errorf("%s is deleted", id)
				}
			}
		})
	}
}
