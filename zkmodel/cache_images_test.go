package zkmodel

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// entryOf is a node of the tree, as it is in a Mirror.
func entryOf(mzxid int64, data string) recipe.Entry {
	return recipe.Entry{Data: []byte(data), Stat: recipe.Stat{Mzxid: mzxid, Mtime: time.UnixMilli(mzxid)}}
}

// Mistakes: an unchanged build is decoded again each time, a changed one is not; what a caller does to its build shows
// in another's; the Stat is that of an earlier look; a build is shown as it was that could not be read since.
func TestBuildsAreDecodedOnce(t *testing.T) {
	m := &Mirror{}
	look := func(e recipe.Entry) *Build { return m.viewBuild("debian", "0000000001", e) }
	first := look(entryOf(5, `{"state": "ready"}`))
	first.State = BuildFailed
	e := entryOf(5, "was decoded before")
	e.Stat.Cversion = 7
	if b := look(e); b.Broken != nil || b.State != BuildReady || b.Stat.Cversion != 7 || b.ID != "0000000001" {
		t.Errorf("the same record again: %+v", b)
	}
	if b := look(entryOf(6, `{"state": "failed"}`)); b.State != BuildFailed {
		t.Errorf("changed: %+v", b)
	}
	if b := look(recipe.Entry{Stat: recipe.Stat{Mzxid: 6}, Err: errors.New("no answer")}); !errors.Is(b.Broken, recipe.ErrUnread) {
		t.Errorf("cannot be read: %+v", b)
	}
}

// Mistakes: as above, of uploads.
func TestUploadsAreDecodedOnce(t *testing.T) {
	m, key := &Mirror{}, UploadKey{Image: "debian", Build: "0000000001", Provider: "east", ID: "0000000002"}
	look := func(e recipe.Entry) *Upload { return m.viewUpload(key, key.Path(), e) }
	look(entryOf(5, `{"state": "ready"}`)).State = UploadFailed
	e := entryOf(5, "was decoded before")
	e.Stat.Cversion = 7
	if u := look(e); u.Broken != nil || u.State != UploadReady || u.Stat.Cversion != 7 || u.UploadKey != key {
		t.Errorf("the same record again: %+v", u)
	}
	if u := look(entryOf(6, `{"state": "failed"}`)); u.State != UploadFailed {
		t.Errorf("changed: %+v", u)
	}
	if u := look(recipe.Entry{Stat: recipe.Stat{Mzxid: 6}, Err: errors.New("no answer")}); !errors.Is(u.Broken, recipe.ErrUnread) {
		t.Errorf("cannot be read: %+v", u)
	}
}

// Mistake: what is gone is kept for ever.
func TestDecodedRecordsOfGoneImagesAreForgotten(t *testing.T) {
	m := &Mirror{}
	var last *BuildTree
	for n := range 500 {
		id := fmt.Sprintf("%010d", n)
		key := UploadKey{Image: "debian", Build: id, Provider: "east", ID: id}
		last = &BuildTree{Build: m.viewBuild("debian", id, entryOf(5, `{"state": "ready"}`))}
		last.Uploads = []*Upload{m.viewUpload(key, key.Path(), entryOf(5, `{"state": "ready"}`))}
	}
	m.trimImages([]*Image{{Name: "debian", Builds: []*BuildTree{last}}})
	if builds, uploads := m.buildCache.size(), m.uploadCache.size(); builds != 1 || uploads != 1 {
		t.Errorf("%d builds and %d uploads are kept", builds, uploads)
	}
	if b := m.viewBuild("debian", last.ID, entryOf(5, "was decoded before")); b.State != BuildReady {
		t.Errorf("the one that is there was forgotten: %+v", b)
	}
}
