package waves

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

const (
	// grain is what free space is told in, so that not every block that is written is told.
	grain = 64 << 20
	// hostsEvery is how often it is told, and read.
	hostsEvery = 10 * time.Second
	// settle is how long a wave waits for what the builders of ours tell, that have just
	// seen it as well.
	settle = 3 * time.Second
	soon   = 100 * time.Millisecond
)

// tellWhile tells of this builder while it is busy with waves, until ctx ends.
func (d *Driver) tellWhile(ctx context.Context, busy <-chan bool) {
	for {
		select {
		case <-ctx.Done():
			return
		case is := <-busy:
			if is {
				d.tellUntil(ctx, busy)
			}
		}
	}
}

// tellUntil tells until it is not busy any more.
func (d *Driver) tellUntil(ctx context.Context, busy <-chan bool) {
	ctx, cancel := context.WithCancel(ctx)
	var told sync.WaitGroup
	defer told.Wait()
	defer cancel()
	told.Go(func() { d.tell(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case is := <-busy:
			if !is {
				return
			}
		}
	}
}

// tell keeps what others must know of this builder in the tree while there are waves,
// until ctx ends.
func (d *Driver) tell(ctx context.Context) {
	last := d.host().Encode()
	node := recipe.NewRegistration(d.Client, wave.HostsPath, d.Host+"-", last)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := node.Run(ctx); err != nil && ctx.Err() == nil {
			d.Log.Warn("Cannot tell those who drive waves what this builder builds and has space for", "error", err)
		}
	}()
	tick := clock.NewTicker(ctx, hostsEvery)
	defer tick.Stop()
	for {
		changed := d.reconfigured()
		if now := d.host().Encode(); !bytes.Equal(now, last) {
			last = now
			node.Set(now)
		}
		select {
		case <-tick.C:
		case <-changed:
		case <-done:
			return
		}
	}
}

// host is what this builder tells of itself.
func (d *Driver) host() wave.Host {
	cfg, free := d.Config(), d.Free()
	if free > 0 {
		free -= free % grain
	}
	return wave.Host{
		Name: d.Host, Images: built(cfg, d.Arch), Workers: d.Workers, Free: free, Reserve: cfg.BuildDiskReserve, Factor: d.Factor,
	}
}

// built are the images that a builder of a configuration builds when it is asked.
func built(cfg *configs.Config, arch string) []string {
	images := []string{}
	for i := range cfg.DiskImages {
		if image := &cfg.DiskImages[i]; builds(cfg, image, arch) {
			images = append(images, image.Name)
		}
	}
	slices.Sort(images)
	return images
}

// builds reports whether a builder of a configuration builds an image when it is asked.
func builds(cfg *configs.Config, image *configs.DiskImage, arch string) bool {
	return cfg.Selects(image.Name) && len(cfg.ImageFormats(image.Name)) > 0 && (image.Architecture == "" || image.Architecture == arch)
}

// hosts are the builders that are there, as far as they tell of themselves.
type hosts struct {
	list []wave.Host
	all  bool // there are no others
	read time.Time
	// late: others of ours are there, which will tell soon. since is when that was seen first.
	late  bool
	since time.Time
	// out are those of list that build nothing at the moment, and why; others says that a
	// builder that does not tell of itself may build.
	out    map[string]string
	others bool
}

// attend notes which builders build nothing at the moment: an operator has paused them, or
// their host cannot.
func (h *hosts) attend(builders []*zkmodel.Component) {
	h.out, h.others = map[string]string{}, false
	builds := map[string]bool{}
	for _, c := range builders {
		at := slices.IndexFunc(h.list, func(b wave.Host) bool { return c.Broken == nil && same(b.Name, c.Hostname) })
		rests := c.Broken == nil && (c.Reason != "" || c.State == zkmodel.ComponentPaused)
		switch {
		case at < 0:
			h.others = h.others || !rests
		case rests:
			h.out[h.list[at].Name] = cmp.Or(c.Reason, "paused")
		default:
			builds[h.list[at].Name] = true
		}
	}
	for name := range builds { // several run there
		delete(h.out, name)
	}
}

// resting says why all builders of an image build nothing at the moment; "" when one does, or
// may, or when there are none.
func (h *hosts) resting(image string) string {
	why := ""
	for _, b := range h.list {
		if _, builds := slices.BinarySearch(b.Images, image); !builds {
			continue
		}
		reason, out := h.out[b.Name]
		if !out {
			return ""
		}
		why = cmp.Or(why, "waits for a builder that builds at the moment: "+b.Name+": "+reason)
	}
	if h.others {
		return ""
	}
	return why
}

// working are those of the builders that tell of themselves that build at the moment.
func (h *hosts) working() []wave.Host {
	return slices.DeleteFunc(slices.Clone(h.list), func(b wave.Host) bool { _, out := h.out[b.Name]; return out })
}

// survey reads anew who is there, if that was long ago, and has the jobs looked at again
// that wait for a builder or for space, if anything is different.
func (w *work) survey(ctx context.Context) error {
	defer func() { w.hosts.attend(w.Mirror.Components(zkmodel.KindBuilder)) }()
	was, now, every := w.hosts, w.Now(), hostsEvery
	if was.late {
		every = soon
	}
	if age := now.Sub(was.read); age >= 0 && age < every {
		return nil
	}
	list, err := w.store.Hosts(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(h wave.Host) bool { return h.Name == w.Host }) {
		list = append(list, w.host())
	}
	is := hosts{list: list, all: true, read: now, since: was.since}
	for _, c := range w.Mirror.Components(zkmodel.KindBuilder) {
		if c.Broken != nil || !slices.ContainsFunc(list, func(h wave.Host) bool { return same(h.Name, c.Hostname) }) {
			is.all, is.late = false, is.late || c.Heeds()
		}
	}
	if is.since.IsZero() {
		is.since = now
	}
	is.late = is.late && now.Sub(is.since) < settle
	w.hosts = is
	if was.all == is.all && was.late == is.late && slices.EqualFunc(was.list, list, func(a, b wave.Host) bool { return bytes.Equal(a.Encode(), b.Encode()) }) {
		return nil
	}
	for rank := range w.Jobs {
		if p := w.Job(rank); p.State == wave.Pending && w.stuck[rank] || p.State == wave.Processing && p.Build == "" && p.Note != "" {
			w.dirty[rank] = true
			delete(w.stuck, rank)
		}
	}
	return nil
}

// same compares a full host name with one that may be short.
func same(full, name string) bool {
	short, _, _ := strings.Cut(full, ".")
	return name == full || name == short
}

// absent says that perhaps nobody builds an image, and whether that is certain, as it is
// where all builders tell what they build. here says whether the host that drives the wave
// builds it.
func (h *hosts) absent(image, host string, here bool) (why string, certain bool) {
	if slices.ContainsFunc(h.list, func(b wave.Host) bool { _, builds := slices.BinarySearch(b.Images, image); return builds }) {
		return "", false
	}
	switch {
	case h.all && len(h.list) > 0:
		return "no builder that runs builds the image", true
	case here:
		return "", false
	}
	return fmt.Sprintf("waits for a builder that has the image: %s, which drives the wave, does not (wave cancel ends it)", host), false
}

// ledger is the space of the builders, less what is asked for and not begun. It is nil
// where there are builders that do not tell.
func (w *work) ledger() *wave.Ledger {
	if !w.hosts.all || len(w.hosts.list) == 0 {
		return nil
	}
	l := wave.NewLedger(w.hosts.working())
	for rank, job := range w.Jobs {
		if p := w.Job(rank); p.State == wave.Processing && p.Build == "" && p.Estimate != nil {
			l.Take(job.Image, p.Estimate.Bytes)
		}
	}
	return l
}

// workers is how many builds may run at a time, as far as builders tell.
func (h *hosts) workers() int {
	n := 0
	for _, b := range h.working() {
		n += b.Workers
	}
	return n
}
