package pool

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// debian is an image with a ready upload in the provider north alone.
func debian() []*zkmodel.Image {
	build := &zkmodel.BuildTree{Build: &zkmodel.Build{Image: "debian", ID: "1", State: zkmodel.BuildReady}}
	build.Uploads = []*zkmodel.Upload{{
		UploadKey: zkmodel.UploadKey{Image: "debian", Build: "1", Provider: "north", ID: "1"},
		State:     zkmodel.UploadReady, ExternalID: zkmodel.TextValue("id"),
	}}
	return []*zkmodel.Image{{Name: "debian", Builds: []*zkmodel.BuildTree{build}}}
}

// in is a pool of a provider, with a label that boots debian and one of a cloud image.
func in(provider string, change ...func(*configs.Provider, *configs.Pool)) *Pool {
	p := configs.Provider{Name: provider, MaxConcurrency: -1}
	section := configs.Pool{
		Name: "main", MaxServers: 5, MaxCores: -1, MaxRAM: -1, MaxVolumes: -1, MaxVolumeGB: -1,
		Labels: []configs.PoolLabel{{Name: "small", DiskImage: "debian"}, {Name: "stock", CloudImage: "cirros"}},
	}
	for _, c := range change {
		c(&p, &section)
	}
	return New("host", p, section)
}

// Each label is offered with what a node of it takes in this pool, and is ready when its
// image is in this provider: a label that is taken for ready launches nodes that have
// nothing to boot from.
func TestOffersOfAPool(t *testing.T) {
	cloud := supply.View{Needs: map[string]map[string]schedule.Offer{
		"main":  {"small": {Needs: providers.Resources{providers.Instances: 1}}, "stock": {Fault: "no flavor"}},
		"spare": {"small": {Needs: providers.Resources{providers.Instances: 9}}},
	}}
	for provider, ready := range map[string]bool{"north": true, "south": false} {
		v := in(provider).View(Moment{Now: time.Now(), Cloud: cloud, Images: debian()})
		want := map[string]schedule.Offer{
			"small": {Needs: providers.Resources{providers.Instances: 1}, Ready: ready},
			"stock": {Fault: "no flavor", Ready: true},
		}
		if diff := cmp.Diff(want, v.Offers); diff != "" {
			t.Errorf("%s offers (-want +got):\n%s", provider, diff)
		}
	}
}

// Mistake: that nobody can tell whether an image is ready is taken for that none is, and requests fail.
func TestOffersOfWhatCannotBeRead(t *testing.T) {
	closed := errors.New("closed")
	for name, c := range map[string]struct {
		provider string
		unread   error // of the image
		unlisted error
		none     bool // the image is not in the list
		want     string
	}{
		"it is read":             {provider: "south"},
		"it is not":              {provider: "south", unread: closed, want: "closed"},
		"one is ready":           {provider: "north", unread: closed},
		"the list cannot be":     {provider: "north", unlisted: closed, none: true, want: "closed"},
		"it is not there at all": {provider: "north", none: true},
	} {
		images := debian()
		images[0].Unread = c.unread
		if c.none {
			images = nil
		}
		v := in(c.provider).View(Moment{Now: time.Now(), Images: images, Unlisted: c.unlisted})
		if offer := v.Offers["small"]; offer.Unread != c.want || v.Offers["stock"].Unread != "" {
			t.Errorf("%s: %+v", name, v.Offers)
		}
	}
}

// How many more may be launched at once is what max-concurrency leaves, never less than
// none, and -1 where it sets nothing; 0 takes no part at all. One that is read as the
// other stops a pool, or lets it launch without end.
func TestRoomForLaunches(t *testing.T) {
	for _, c := range []struct {
		limit, launching, room int
		idle                   bool
	}{{-1, 7, -1, false}, {3, 1, 2, false}, {3, 7, 0, false}, {0, 0, -1, true}} {
		p := in("north", func(p *configs.Provider, _ *configs.Pool) { p.MaxConcurrency = c.limit })
		if v := p.View(Moment{Launching: c.launching}); v.Room != c.room || v.Idle != c.idle {
			t.Errorf("%+v: room %d, idle %t", c, v.Room, v.Idle)
		}
	}
}

// A cloud's own limits count unless the pool ignores them; what it tells is a hint then.
// They are believed where they count, and of machines that exist already.
func TestLimitsThatCount(t *testing.T) {
	told := providers.Resources{providers.Instances: 3}
	cloud := supply.View{Limits: told, Needs: map[string]map[string]schedule.Offer{"main": {"small": {Needs: providers.Resources{providers.Instances: 1}}}}}
	v := in("north").View(Moment{Cloud: cloud})
	if !cmp.Equal(v.Cloud, told) || !v.Learned.Told {
		t.Errorf("limits of the cloud: %v, told: %t", v.Cloud, v.Learned.Told)
	}
	ignores := in("north", func(_ *configs.Provider, section *configs.Pool) { section.IgnoreProviderQuota = true })
	v = ignores.View(Moment{Cloud: cloud})
	if v.Cloud != nil || v.Learned.Told || !cmp.Equal(v.Learned.Hint, told) {
		t.Errorf("limits that are ignored: %v, told: %t, hint: %v", v.Cloud, v.Learned.Told, v.Learned.Hint)
	}
	cloud.Static = true
	if v = ignores.View(Moment{Cloud: cloud}); !v.Learned.Told || !v.Static {
		t.Errorf("machines that exist already: told %t", v.Learned.Told)
	}
}

// The zones of the configuration count before the cloud's; a cloud that refused is tried
// again when its time has come, not before.
func TestZonesAndPauses(t *testing.T) {
	now := time.Now()
	cloud := supply.View{Zones: []string{"a", "b"}, Taught: supply.Taught{Due: now.Add(time.Second)}}
	v := in("north").View(Moment{Now: now, Cloud: cloud})
	if !slices.Equal(v.Zones, cloud.Zones) || v.Learned.Due {
		t.Errorf("zones %v, due %t", v.Zones, v.Learned.Due)
	}
	one := in("north", func(_ *configs.Provider, section *configs.Pool) { section.AvailabilityZones = []string{"c"} })
	v = one.View(Moment{Now: now.Add(time.Second), Cloud: cloud})
	if !slices.Equal(v.Zones, []string{"c"}) || !v.Learned.Due {
		t.Errorf("zones %v, due %t", v.Zones, v.Learned.Due)
	}
}

// A label is kept in stock where min-ready asks for it and a pool has it for sure: stock
// of a label that is left out because of a mistake would be made and deleted in turns.
func TestLabelsKeptInStock(t *testing.T) {
	pools := []*Pool{in("north"), in("south")}
	pools[1].Frozen = map[string]string{"stock": "its image is wrong"}
	labels := []configs.Label{{Name: "small", MinReady: 1}, {Name: "stock", MinReady: 0}, {Name: "elsewhere", MinReady: 3}}
	got := Stocked(labels, pools)
	if len(got) != 1 || got[0].Name != "small" || len(labels) != 3 {
		t.Errorf("kept: %+v of %+v", got, labels)
	}
	labels[1].MinReady = 2
	if got = Stocked(labels, pools[1:]); len(got) != 1 {
		t.Errorf("kept although it is left out: %+v", got)
	}
	for label, want := range map[string]bool{"small": false, "stock": true, "elsewhere": false} {
		if CanMake(pools[1:], debian(), label) != want {
			t.Errorf("south can make %s: %t", label, !want)
		}
	}
	if !CanMake(pools, debian(), "small") {
		t.Error("north cannot make small, whose image it has")
	}
}

// Mistake: a pool that ignores the limits of its cloud waits for them where nobody may read them, or one that honors them does not say so.
func TestLimitsThatMayNotBeRead(t *testing.T) {
	cloud := supply.View{NoLimits: "they cannot be read"}
	for ignores, want := range map[bool]string{true: "", false: "they cannot be read"} {
		v := in("north", func(_ *configs.Provider, p *configs.Pool) { p.IgnoreProviderQuota = ignores }).View(Moment{Now: time.Now(), Cloud: cloud})
		if v.Unavailable != want {
			t.Errorf("ignore-provider-quota: %t: %q, want %q", ignores, v.Unavailable, want)
		}
	}
}
