package builders

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"poolkeeper/test/sim/dib"
	"poolkeeper/test/sim/stage"
	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// judge sees every transaction, every change of a cloud and every build before any builder does. It
// has no opinion of how things are done; it knows what must never be.
type judge struct {
	*stage.Timeline
	world *world

	mu        sync.Mutex
	data      map[string][]byte // what is below the images, as the leader has it
	lines     map[string][]contender
	until     map[string]contender // who held the locks that go in the transaction
	builds    map[string]*zkmodel.Build
	uploads   map[string]*zkmodel.Upload
	ids       map[string]bool     // paths of builds and uploads that there ever was a record of
	backup    map[string]bool     // those that there had been when the backup was made
	live      map[string][]string // by image: builds that have processes, as host/build
	begun     map[string]string   // who made the record of an upload, by its path
	asked     map[string]bool     // builds and uploads that an operator has marked
	found     map[string]bool     // paths of findings of leaked images
	there     map[string]bool     // images in clouds, as "provider id"
	vanished  map[string]bool     // images that a person has deleted there
	moves     map[string]int
	unread    map[string]*unreadable // records that a person has spoilt
	noted     map[string]bool        // records that a person has noted upon
	handled   map[string]time.Time   // when a person has changed a record
	putBack   map[string]bool        // uploads whose records a person or a backup has put back: their images may be gone
	changes   int                    // transactions that have changed something
	last      string
	restless  stage.Restless
	commanded map[string]command         // builds whose command has begun, by path
	unheard   map[string]map[string]bool // by host: builds of before a roll back that it need not know
}

// contender is one that stands in line for a lock.
type contender struct {
	name    string
	session int64
	client  string
	at      time.Time
}

func newJudge(w *world) *judge {
	return &judge{
		Timeline: w.seed.Timeline, world: w, data: map[string][]byte{}, lines: map[string][]contender{}, until: map[string]contender{}, builds: map[string]*zkmodel.Build{},
		uploads: map[string]*zkmodel.Upload{}, ids: map[string]bool{}, begun: map[string]string{}, live: map[string][]string{}, asked: map[string]bool{}, there: map[string]bool{}, vanished: map[string]bool{}, found: map[string]bool{}, moves: map[string]int{},
		unread: map[string]*unreadable{}, noted: map[string]bool{}, handled: map[string]time.Time{}, putBack: map[string]bool{}, commanded: map[string]command{}, unheard: map[string]map[string]bool{},
	}
}

// committed looks at a transaction.
func (j *judge) committed(t zookeeper.Transaction) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := j.served()
	clear(j.until)
	for _, c := range t.Changes {
		if recipe.IsContender(path.Base(c.Path)) {
			j.line(t, c)
			continue
		}
		if c.Kind != zookeeper.Check && len(t.Client) > 0 && !lives(c.Path) {
			j.changes++
			j.last = t.Client + " " + c.Path
		}
		if strings.HasPrefix(c.Path, zkmodel.ImagesRoot+"/") {
			j.record(t, c)
		} else if isFinding(c.Path) && c.Kind != zookeeper.Check {
			j.found[c.Path] = c.Kind != zookeeper.Delete
		}
	}
	if isBuilder(t.Client) {
		j.stillServed(t, before)
	}
}

// lives reports whether a path changes also when nothing is done.
func lives(p string) bool {
	return strings.HasPrefix(p, "/poolkeeper/clock") || strings.HasPrefix(p, zkmodel.BuilderWorkPath+"/") // it tells what clocks show
}

// isFinding reports whether a path is what searches have found in a provider.
func isFinding(p string) bool { return path.Dir(p) == path.Dir(zkmodel.FindingsPath("x")) }

func isBuilder(client string) bool { return strings.HasPrefix(client, "b") }

// rolledBack takes over what the servers have from now on. Up is since when builders had run as all were shut.
func (j *judge) rolledBack(to *zookeeper.Snapshot, up map[string]time.Duration, shut time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.Note("servers", "are back at the state of the backup")
	clear(j.data)
	clear(j.lines)
	clear(j.builds)
	clear(j.uploads)
	clear(j.found)
	clear(j.unread)
	clear(j.noted)
	clear(j.asked)
	maps.DeleteFunc(j.ids, func(p string, _ bool) bool { return j.forgets(p) })
	j.unknownTo(up, shut)
	to.Each(func(p string, data []byte, session int64) {
		j.found[p] = isFinding(p)
		if recipe.IsContender(path.Base(p)) {
			j.lines[path.Dir(p)] = append(j.lines[path.Dir(p)], contender{path.Base(p), session, "?", time.Time{}})
			return
		}
		parts := strings.Split(strings.TrimPrefix(p, zkmodel.ImagesRoot+"/"), "/")
		if !strings.HasPrefix(p, zkmodel.ImagesRoot+"/") {
			return
		}
		j.data[p] = data
		switch {
		case len(parts) == 3 && parts[1] == "builds" && parts[2] != "lock":
			j.builds[p] = zkmodel.DecodeBuild(parts[0], parts[2], data, recipe.Stat{})
			if j.builds[p].State == zkmodel.BuildDeleting {
				j.asked[p] = true
			}
			j.restored(p, data, j.builds[p].Broken)
		case len(parts) == 7 && parts[5] == "images" && parts[6] != "lock":
			key := zkmodel.UploadKey{Image: parts[0], Build: parts[2], Provider: parts[4], ID: parts[6]}
			j.uploads[p] = zkmodel.DecodeUpload(key, data, recipe.Stat{})
			if j.putBack[p] = true; j.uploads[p].State == zkmodel.UploadDeleting {
				j.asked[p] = true
			}
			j.restored(p, data, j.uploads[p].Broken)
		}
	})
}

// line keeps who stands in line for which lock.
func (j *judge) line(t zookeeper.Transaction, c zookeeper.Change) {
	dir, name := path.Dir(c.Path), path.Base(c.Path)
	switch c.Kind {
	case zookeeper.Create:
		j.lines[dir] = append(j.lines[dir], contender{name, t.Session, t.Client, time.Now()})
		if isBuilder(t.Client) && j.restless.Again(t.Client, dir) {
			j.Wrong(t.Client, "takes %s for more than %d times in %s", dir, stage.MostTries, stage.Watched)
		}
	case zookeeper.Delete:
		if _, known := j.until[dir]; !known {
			j.until[dir] = j.holder(dir) // a record goes with its lock, in one transaction
		}
		j.lines[dir] = slices.DeleteFunc(j.lines[dir], func(one contender) bool { return one.name == name })
		if len(j.lines[dir]) == 0 {
			delete(j.lines, dir)
		}
	}
}

// holder is who holds a lock: the one with the lowest number.
func (j *judge) holder(dir string) contender {
	var first contender
	for _, c := range j.lines[dir] {
		if first.name == "" || c.name[len(c.name)-10:] < first.name[len(first.name)-10:] {
			first = c
		}
	}
	return first
}

// record looks at a change of what may be a build or an upload.
func (j *judge) record(t zookeeper.Transaction, c zookeeper.Change) {
	if c.Kind == zookeeper.Delete {
		delete(j.data, c.Path)
	} else if c.Kind != zookeeper.Check {
		j.data[c.Path] = c.Data
	}
	parts := strings.Split(strings.TrimPrefix(c.Path, zkmodel.ImagesRoot+"/"), "/")
	switch {
	case len(parts) == 3 && parts[1] == "builds" && parts[2] != "lock" && parts[2] != "passed":
		j.build(t, c, parts[0], parts[2])
	case len(parts) == 7 && parts[5] == "images" && parts[6] != "lock":
		j.upload(t, c, zkmodel.UploadKey{Image: parts[0], Build: parts[2], Provider: parts[4], ID: parts[6]})
	}
}

func (j *judge) build(t zookeeper.Transaction, c zookeeper.Change, image, id string) {
	was := j.builds[c.Path]
	switch c.Kind {
	case zookeeper.Create:
		j.numbered(t.Client, c.Path)
	case zookeeper.Delete:
		j.unnumbered(c.Path)
		delete(j.builds, c.Path)
		j.respects(t.Client, c.Path, nil, true, zkmodel.BuildsLockPath(image), zkmodel.LockPath(c.Path))
		j.held(t, c.Path, zkmodel.BuildsLockPath(image), zkmodel.LockPath(c.Path))
		j.moved(t.Client, "build", string(was.State), "gone")
		j.Note(t.Client, "removes the record of build %s-%s, which was %s", image, id, was.State)
		for p := range j.uploads {
			if strings.HasPrefix(p, c.Path+"/") {
				j.Wrong(t.Client, "removes the record of build %s-%s, which has uploads", image, id)
			}
		}
		return
	case zookeeper.SetData:
	default:
		return
	}
	is := zkmodel.DecodeBuild(image, id, c.Data, recipe.Stat{})
	j.builds[c.Path] = is
	from := zkmodel.BuildState("")
	if was != nil {
		from = was.State
	}
	if t.Client == hand {
		j.byHand(c.Path, c.Data, "build", string(from), string(is.State), is.Broken)
		return
	}
	j.respects(t.Client, c.Path, c.Data, false)
	j.held(t, c.Path, zkmodel.BuildsLockPath(image), zkmodel.LockPath(c.Path))
	if from == is.State {
		return
	}
	j.Note(t.Client, "build %s-%s: %s → %s %s", image, id, from, is.State, is.Reason)
	j.moved(t.Client, "build", string(from), string(is.State))
	if from != "" && !allowed(zkmodel.BuildTransitions(), from, is.State, t.Client) {
		j.Wrong(t.Client, "moves build %s-%s from %s to %s", image, id, from, is.State)
	}
	if t.Client == operator {
		j.asked[c.Path] = true
	}
}

func (j *judge) upload(t zookeeper.Transaction, c zookeeper.Change, key zkmodel.UploadKey) {
	was := j.uploads[c.Path]
	switch c.Kind {
	case zookeeper.Delete:
		delete(j.uploads, c.Path)
		j.respects(t.Client, c.Path, nil, true, zkmodel.UploadsLockPath(key.Image, key.Build, key.Provider), zkmodel.LockPath(c.Path))
		j.held(t, c.Path, zkmodel.UploadsLockPath(key.Image, key.Build, key.Provider), zkmodel.LockPath(c.Path))
		j.taken(t, was, nil)
		j.moved(t.Client, "upload", string(was.State), "gone")
		j.Note(t.Client, "removes the record of upload %s, which was %s", brief(key), was.State)
		return
	case zookeeper.Create:
		j.begun[c.Path] = t.Client
		j.numbered(t.Client, c.Path)
	case zookeeper.SetData:
	default:
		return
	}
	is := zkmodel.DecodeUpload(key, c.Data, recipe.Stat{})
	j.uploads[c.Path] = is
	from := zkmodel.UploadState("")
	if was != nil {
		from = was.State
	}
	if t.Client == hand {
		j.byHand(c.Path, c.Data, "upload", string(from), string(is.State), is.Broken)
		return
	}
	if was != nil && was.Suspect != is.Suspect { // which a builder may learn as it decides
		j.handled[c.Path] = time.Now()
	}
	j.respects(t.Client, c.Path, c.Data, false)
	j.held(t, c.Path, zkmodel.UploadsLockPath(key.Image, key.Build, key.Provider), zkmodel.LockPath(c.Path))
	j.taken(t, was, is)
	if from == is.State {
		return
	}
	j.Note(t.Client, "upload %s: %s → %s %s", brief(key), from, is.State, is.Reason)
	j.moved(t.Client, "upload", string(from), string(is.State))
	if from != "" && !allowed(zkmodel.UploadTransitions(), from, is.State, t.Client) {
		j.Wrong(t.Client, "moves upload %s from %s to %s", brief(key), from, is.State)
	}
	if t.Client == operator {
		j.asked[c.Path] = true
	}
	if at := is.Provider + " " + is.ExternalID.Text(); isBuilder(t.Client) && is.State == zkmodel.UploadReady && !j.there[at] && !j.vanished[at] {
		j.Wrong(t.Client, "writes that upload %s is ready, and there is no image %s", brief(key), at)
	}
}

func brief(k zkmodel.UploadKey) string {
	return fmt.Sprintf("%s-%s at %s, %s", k.Image, k.Build, k.Provider, k.ID)
}

// kept is how many ready uploads of an image stay in each provider that wants it, by all versions of the configuration.
var kept = map[string]int{"debian": 2, "fedora": 1, "alpine": 2}

// taken: what takes a ready upload away leaves as many as the policy says. There are three excuses: an operator has
// the build deleted, a launcher has doubted the upload, or a version of the configuration does not want the image there.
func (j *judge) taken(t zookeeper.Transaction, was, is *zkmodel.Upload) {
	if !isBuilder(t.Client) || was == nil || was.State != zkmodel.UploadReady || is != nil && is.State == zkmodel.UploadReady {
		return
	}
	if j.asked[zkmodel.BuildPath(was.Image, was.Build)] || was.Suspect != "" || !slices.Contains(wanted[was.Provider], was.Image) {
		return
	}
	n := 0
	for _, u := range j.uploads {
		if u.Image == was.Image && u.Provider == was.Provider && u.Broken == nil && u.State == zkmodel.UploadReady && u.Suspect == "" {
			n++
		}
	}
	if n < kept[was.Image] && !j.disturbed(was.Image) {
		j.Wrong(t.Client, "takes upload %s away, which leaves %d of %d that are to stay", brief(was.UploadKey), n, kept[was.Image])
	}
}

// held: who writes or removes a record holds one of its locks.
func (j *judge) held(t zookeeper.Transaction, record string, locks ...string) {
	for _, lock := range locks {
		if j.holder(lock).session == t.Session || j.until[lock].name != "" && j.until[lock].session == t.Session {
			return
		}
	}
	j.Wrong(t.Client, "session %#x changes %s, and holds no lock of it: %v", t.Session, record, j.holder(locks[0]))
}

// moved counts a move, and who made it.
func (j *judge) moved(client, kind, from, to string) {
	by := "us"
	if client == operator {
		by = "an operator"
	}
	j.moves[fmt.Sprintf("moved %s %s → %s by %s", kind, from, to, by)]++
}

func allowed[S ~string](table []zkmodel.Transition[S], from, to S, client string) bool {
	by := zkmodel.ByUs
	if client == operator {
		by = zkmodel.ByOperator
	}
	return slices.ContainsFunc(table, func(row zkmodel.Transition[S]) bool {
		return (row.From == from || row.From == "") && row.To == to && row.By&by != 0
	})
}

// served is how many uploads are ready of each image in each provider, as far as builders can know: that an image has
// vanished they are told by a launcher, which cannot boot from it.
func (j *judge) served() map[[2]string]int {
	n := map[[2]string]int{}
	for _, u := range j.uploads {
		at := u.Provider + " " + u.ExternalID.Text()
		if u.Broken == nil && u.State == zkmodel.UploadReady && (j.there[at] || j.vanished[at] && u.Suspect == "") {
			n[[2]string{u.Image, u.Provider}]++
		}
	}
	return n
}

// stillServed: an image that is in a provider stays there, unless an operator has it deleted.
func (j *judge) stillServed(t zookeeper.Transaction, before map[[2]string]int) {
	now := j.served()
	for _, provider := range clouds {
		for _, image := range wanted[provider] {
			at := [2]string{image, provider}
			if before[at] == 0 || now[at] > 0 || j.word(image, provider) || j.disturbed(image) {
				continue
			}
			j.Wrong(t.Client, "takes the last ready upload of %s from %s", image, provider)
		}
	}
}

// word reports whether an operator has marked something of an image that is not gone.
func (j *judge) word(image, provider string) bool {
	for p := range j.asked {
		if p == zkmodel.ImagesRoot+"/"+image || strings.HasPrefix(p, zkmodel.BuildsPath(image)+"/") && (j.uploads[p] == nil || j.uploads[p].Provider == provider) {
			if j.builds[p] != nil || j.uploads[p] != nil {
				return true
			}
		}
	}
	return false
}

// built is told of builds.
func (j *judge) built(e dib.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	is := e.Host + "/" + e.Build
	if !e.Began {
		j.live[e.Image] = slices.DeleteFunc(j.live[e.Image], func(one string) bool { return one == is })
		j.Note(e.Host, "the processes of build %s-%s end: %s", e.Image, e.Build, e.Why)
		return
	}
	j.Note(e.Host, "begins to make build %s-%s", e.Image, e.Build)
	j.commanded[zkmodel.BuildPath(e.Image, e.Build)] = command{host: e.Host, at: j.Age()}
	if len(j.live[e.Image]) > 0 {
		j.Wrong(e.Host, "makes build %s-%s beside %v", e.Image, e.Build, j.live[e.Image])
	}
	j.live[e.Image] = append(j.live[e.Image], is)
	if j.builds[zkmodel.BuildPath(e.Image, e.Build)] == nil {
		j.Wrong(e.Host, "makes build %s-%s, which has no record", e.Image, e.Build)
	}
}

// aBuild picks one of an image.
func (j *judge) aBuild(image string, pick uint64) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var list []string
	for _, b := range j.builds {
		if b.Image == image {
			list = append(list, b.ID)
		}
	}
	slices.Sort(list)
	if len(list) == 0 {
		return ""
	}
	return list[pick%uint64(len(list))]
}

// anUpload picks one of an image, in a provider if there is any.
func (j *judge) anUpload(image, provider string, pick uint64) (zkmodel.UploadKey, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var list []string
	for p, u := range j.uploads {
		if u.Image == image {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	if there := slices.DeleteFunc(slices.Clone(list), func(p string) bool { return j.uploads[p].Provider != provider }); len(there) > 0 {
		list = there
	}
	if len(list) == 0 {
		return zkmodel.UploadKey{}, false
	}
	return j.uploads[list[pick%uint64(len(list))]].UploadKey, true
}

// work is a build or an upload that is under way.
type work struct {
	image, build string
	upload       *zkmodel.UploadKey
}

// underWay are those, by the records.
func (j *judge) underWay() (list []work) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range slices.Sorted(maps.Keys(j.builds)) {
		if b := j.builds[p]; b.State == zkmodel.BuildBuilding {
			list = append(list, work{image: b.Image, build: b.ID})
		}
	}
	for _, p := range slices.Sorted(maps.Keys(j.uploads)) {
		if u := j.uploads[p]; u.State == zkmodel.UploadUploading {
			list = append(list, work{u.Image, u.Build, &u.UploadKey})
		}
	}
	return list
}

// counts tells what was reached.
func (j *judge) counts(w *world) {
	j.mu.Lock()
	defer j.mu.Unlock()
	add := func(what string, n int) {
		for range n {
			j.Count(what)
		}
	}
	for move, n := range j.moves {
		add(move, n)
	}
	for kind, n := range w.clouds.Met() {
		add("met "+kind, n)
	}
	for _, s := range w.hosts {
		for _, o := range append(dib.Outcomes(), dib.Works) {
			add("build that "+string(o), s.Met(o))
		}
	}
}
