package waves_test

import (
	"sync"
	"testing"
	"time"

	"poolkeeper/builder/waves"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// asNodepool serves flags as Nodepool's builder does (a pass over all images; the image's
// lock is tried, the flag looked at again under it, and removed when the build is ready, if it is
// there still), in Python and with kazoo's locks. The first build of image b fails. What a server
// that is away interrupts is begun anew with the next pass: the build by its flag, and the
// uploads of the newest build that is ready by what is missing of them.
const asNodepool = `
import json, time, threading
images, failed, me = ['a', 'b', 'c'], False, None
def record(state, **more):
    return json.dumps(dict(more, state=state, state_time=time.time())).encode()
def register():
    global me
    if me is None or not zk.exists(me):  # it went with a session
        me = zk.create('/nodepool/components/builder/np-', b'{"hostname": "np", "kind": "builder", "model_api": 0, "state": "running", "version": "11.0.0"}',
                       ephemeral=True, sequence=True, makepath=True)
def build(image, base, flag):
    global failed
    made = dict(builder='np', builder_id='np', formats='qcow2', username='zuul', python_path='auto', shell_type=None)
    path = zk.create(base + '/', record('building', **made), makepath=True, sequence=True)
    if image == 'b' and not failed:
        failed = True
        zk.set(path, record('failed', **made))
        return
    zk.set(path, record('ready', **made))
    try:
        zk.delete(flag)
    except NoNodeError:
        pass  # who asked has taken it back, for the build that failed before
def upload(image):
    base = '/nodepool/images/%s/builds' % image
    if not zk.exists(base):
        return
    builds = [base + '/' + n for n in sorted(zk.get_children(base)) if n != 'lock']
    records = [(b, json.loads(zk.get(b)[0] or b'{}')) for b in builds]
    ready = [(b, r['builder']) for b, r in records if r.get('state') == 'ready']
    if not ready or ready[-1][1] != 'np':  # another's files
        return
    for provider in ('north', 'south'):
        folder = ready[-1][0] + '/providers/' + provider + '/images'
        zk.ensure_path(folder)
        lock = zk.Lock(folder + '/lock', 'np')
        if not lock.acquire(blocking=False):
            continue
        try:
            old = [folder + '/' + n for n in zk.get_children(folder) if n != 'lock']
            if any(json.loads(zk.get(u)[0])['state'] == 'ready' for u in old):
                continue
            for interrupted in old:
                zk.delete(interrupted)
            path = zk.create(folder + '/', record('uploading'), sequence=True)
            zk.set(path, record('ready', external_id='x', external_name='x', format='qcow2'))
        finally:
            lock.release()
def look(image):
    base, flag = '/nodepool/images/%s/builds' % image, '/nodepool/images/%s/request-build' % image
    if not zk.exists(flag):
        return
    lock = zk.Lock(base + '/lock', 'np')
    if not lock.acquire(blocking=False):
        return
    try:
        if zk.exists(flag):
            build(image, base, flag)
    finally:
        lock.release()
def passes():
    while True:
        for step, of in [(lambda _: register(), None)] + [(f, i) for i in images for f in (look, upload)]:
            try:
                step(of)
            except Exception:
                pass
        time.sleep(0.02)
register()
threading.Thread(target=passes, daemon=True).start()
say('up')
hear()
`

// Mistakes: a wave that Nodepool's builder cannot complete, alone or beside one of ours, or
// disturbs: a flag that it has removed and that is made again, a failed build that ends the
// job, a builder that tells nothing of itself and holds the wave up.
func TestNodepoolBuilderBesideAWave(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a", "b", "c")
	s.driver("one", nil)
	s.driver("two", nil)
	np := zktest.StartKazoo(t, s.addr, s.root, asNodepool)
	np.Expect("up")
	s.create("alone", func(w *wave.Wave) { w.MaxParallel = 2 })
	r := s.result("alone")
	if r.State != wave.Completed {
		t.Errorf("alone: %+v", r)
	}
	for i, job := range r.Jobs {
		want := []string{"0000000001", "0000000002", "0000000001"}[i]
		if job.Builder != "np" || job.Build != want || len(job.Uploads) != 2 {
			t.Errorf("alone: %+v", job)
		}
	}
	s.builder("x")
	s.create("beside")
	if err := s.models.RequestBuild(t.Context(), "a"); err != nil { // a person's
		t.Fatal(err)
	}
	w := &wave.Wave{ID: "one", Until: wave.UntilUploaded, MaxFailures: "0", Follow: true}
	if err := s.store.Ask(t.Context(), w, waves.Job(s.config, "c")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"beside", "one"} {
		if r := s.result(id); r.State != wave.Completed {
			t.Errorf("%s: %+v", id, r)
		}
	}
	np.Say("end")
	for _, image := range []string{"a", "b", "c"} {
		s.eventually(image+" is at rest", func() bool {
			_, asked, err := s.models.Session().Exists(t.Context(), zkmodel.RequestBuildPath(image))
			line, lerr := recipe.Contenders(t.Context(), s.models.Session(), zkmodel.BuildsLockPath(image))
			return err == nil && lerr == nil && !asked && len(line) == 0
		})
	}
}

// Mistakes: a wave that is lost, or an image that is built again, when ZooKeeper's server is
// killed and comes back between the steps of who drives it.
func TestServerRestartsAtSteps(t *testing.T) {
	t.Parallel()
	server := zktest.Start(t)
	s := newSiteAt(t, server.Addr(), "/ci", "a", "b", "c")
	np := zktest.StartKazoo(t, server.Addr(), "/ci", asNodepool)
	np.Expect("up")
	var mu sync.Mutex
	kill := map[waves.Moment]bool{}
	away, back := make(chan struct{}), make(chan struct{})
	at := func(_ *recipe.Client, m waves.Moment) {
		mu.Lock()
		now := kill[m]
		delete(kill, m)
		mu.Unlock()
		if now {
			server.Kill()
			away <- struct{}{}
			<-back
		}
	}
	s.driver("one", at)
	s.driver("two", at)
	moments := []waves.Moment{waves.Laid, waves.Applied, waves.Reported}
	for n, m := range moments {
		mu.Lock()
		kill[m] = true
		mu.Unlock()
		id := "w" + string(rune('0'+n))
		s.create(id, func(w *wave.Wave) { w.MaxParallel = 1 })
		select {
		case <-away:
		case <-time.After(time.Minute):
			t.Fatalf("nobody came to %q", m)
		}
		server.Restart(t)
		back <- struct{}{}
		if r := s.result(id); r.State != wave.Completed || r.Counts[wave.Completed] != 3 {
			t.Errorf("%s: %+v", m, r)
		}
	}
	for _, image := range []string{"a", "b", "c"} {
		is, err := s.models.Image(t.Context(), image)
		if err != nil {
			t.Fatal(err)
		}
		ready := 0
		for _, b := range is.Builds {
			if b.State == zkmodel.BuildReady {
				ready++
			}
		}
		// A build of Nodepool's that the server's end interrupts is begun anew.
		if ready < len(moments) || ready > 2*len(moments) || is.BuildRequested != nil {
			t.Errorf("%s has %d ready builds of %d waves", image, ready, len(moments))
		}
	}
}
