package builder

import (
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// asNodepoolBeside is a Nodepool with both its daemons, by its rules and with kazoo's locks,
// which look all the time (reference: its launcher takes the newest upload that is ready, by
// the time of its state; its builder's clean-up, step 1 to 2b, with a cloud that deletes nothing). It
// tells what its launcher has ever booted from, and what its builder has removed.
const asNodepoolBeside = `
import json, threading, time
images, providers, boots, removed = ['img', 'other'], ['north', 'south'], {}, []
passes = {}
def children(path):
    try:
        return sorted(zk.get_children(path))
    except NoNodeError:
        return []
def records(folder):
    for name in children(folder):
        if name == 'lock':
            continue
        try:
            data, stat = zk.get(folder + '/' + name)
            yield name, json.loads(data)
        except NoNodeError:
            pass
def uploads(image):
    base = '/nodepool/images/%s/builds' % image
    for build, record in records(base):
        for provider in providers:
            folder = '%s/%s/providers/%s/images' % (base, build, provider)
            for upload, it in records(folder):
                yield build, record, provider, folder, upload, it
def launcher():
    for image in images:
        newest = {}
        for build, record, provider, folder, upload, it in uploads(image):
            if it['state'] == 'ready' and it['state_time'] >= newest.get(provider, (0, ''))[0]:
                newest[provider] = (it['state_time'], build)
        for provider, (_, build) in newest.items():
            seen = boots.setdefault((image, provider), [])
            if build not in seen:
                seen.append(build)
def cleaner():
    for image in images:
        every = list(uploads(image))
        recent = []
        for provider in providers:
            ready = [u for u in every if u[2] == provider and u[5]['state'] == 'ready' and u[1]['state'] == 'ready']
            recent += [(u[0], provider, u[4]) for u in sorted(ready, key=lambda u: -u[5]['state_time'])[:2]]
        for build, record, provider, folder, upload, it in every:
            if it['state'] != 'uploading':
                continue # its cloud deletes nothing, so that other records stay
            lock = zk.Lock(folder + '/lock', 'np')
            if not lock.acquire(blocking=False):
                continue
            try:
                if json.loads(zk.get(folder + '/' + upload)[0])['state'] == 'uploading':
                    zk.delete(folder + '/' + upload, recursive=True)
                    removed.append('%s %s %s' % (image, provider, build))
            finally:
                lock.release()
def forever(look):
    while True:
        try:
            look()
            passes[look] = passes.get(look, 0) + 1
        except Exception:
            pass # Nodepool begins its next pass
        time.sleep(0.005)
for look in (launcher, cleaner):
    threading.Thread(target=forever, args=(look,), daemon=True).start()
say('up')
while hear():
    least = {look: passes.get(look, 0) + 2 for look in (launcher, cleaner)}
    while any(passes.get(look, 0) < n for look, n in least.items()):
        time.sleep(0.005)
    say('; '.join('%s %s: %s' % (i, p, ','.join(b)) for (i, p), b in sorted(boots.items())) or 'nothing', '- removed:', ', '.join(removed) or 'nothing')
`

// A Nodepool's launcher and builder beside two builders of ours, two images and two
// providers, while uploads are tried, one of our builders ends, and trials come to their ends:
// theirs boots from nothing that is under trial or was rejected, and takes no record of it.
// Mistakes: a record that is ready for a moment; a lock that is free for a moment, as its
// holder ends or hands over.
func TestTrialsBesideNodepool(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("other")
	for i := range s.config.DiskImages {
		s.config.DiskImages[i].Validate = &configs.Validate{Timeout: time.Minute, Checks: []configs.ValidateCheck{{SSH: true}}}
	}
	s.config.Providers = nil
	s.addProvider("north", "qcow2", "img", "other")
	s.addProvider("south", "qcow2", "img", "other")
	np := zktest.StartKazoo(t, s.server.Addr(), s.root, asNodepoolBeside)
	np.Expect("up")
	expect := func(want string) {
		t.Helper()
		np.Say("tell")
		np.Expect(want + " - removed: nothing")
	}
	first := s.start()
	s.eventually("all are tried", func() bool { return len(s.trials("img"))+len(s.trials("other")) == 4 })
	expect("nothing")
	for _, image := range []string{"img", "other"} {
		s.comesTo(image, "north", zkmodel.ValidationPassed, "")
		s.comesTo(image, "south", zkmodel.ValidationPassed, "")
		s.ready(image, 1, "north", "south")
	}
	const one = "img north: 0000000001; img south: 0000000001; other north: 0000000001; other south: 0000000001"
	expect(one)

	for _, image := range []string{"img", "other"} {
		if err := s.store.RequestBuild(t.Context(), image); err != nil {
			t.Fatal(err)
		}
	}
	s.eventually("all are tried again", func() bool { return len(s.trials("img"))+len(s.trials("other")) == 4 })
	s.config.ImagesDir += "2" // of the second builder
	s.start(s.other("second"))
	for _, image := range []string{"img", "other"} {
		for _, p := range []string{"north", "south"} {
			s.eventually("an heir stands in line for "+image+" in "+p, func() bool { return s.standsInLine("second", image, p) })
		}
	}
	first()
	expect(one)
	s.comesTo("img", "north", zkmodel.ValidationPassed, "")
	s.comesTo("img", "south", zkmodel.ValidationFailed, "no python")
	s.comesTo("other", "south", zkmodel.ValidationPassed, "")
	s.eventually("three have ended", func() bool { return len(s.trials("img"))+len(s.trials("other")) == 1 })
	expect("img north: 0000000001,0000000002; img south: 0000000001; other north: 0000000001; other south: 0000000001,0000000002")
	np.Say("")
}

// standsInLine reports whether a builder holds or waits for the newest uploads of an image
// to a provider.
func (s *site) standsInLine(host, image, provider string) bool {
	s.t.Helper()
	builds := s.tree(image).Builds
	lock := zkmodel.UploadsLockPath(image, builds[len(builds)-1].ID, provider)
	names, err := recipe.Contenders(s.t.Context(), s.store.Session(), lock)
	if err != nil {
		return false // it is not there yet
	}
	return slices.ContainsFunc(names, func(c recipe.Contender) bool { return strings.HasPrefix(c.Identifier, host) })
}
