package builders

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

const (
	// rest is how long everything may take to come to rest after the last fault: a back-off, a build,
	// its uploads, and two searches for leaked images.
	rest = 90 * time.Minute
	// still is for how long nothing may change then.
	still = 30 * time.Minute
)

// settle: each image is ready in each provider, nothing is left over, and nothing changes any more.
func (w *world) settle() {
	w.judge.Note("world", "is to come to rest")
	why, since := "?", w.judge.Age()
	for ; why != "" && w.judge.Age()-since < rest; wait(time.Minute) {
		w.doubt()
		why = w.disorder()
	}
	if why != "" {
		w.judge.Wrong("world", "not at rest after %s: %s", rest, why)
		return
	}
	w.judge.Note("world", "is at rest")
	w.judge.mu.Lock()
	before := w.judge.changes
	w.judge.mu.Unlock()
	wait(still)
	w.judge.mu.Lock()
	n, last := w.judge.changes-before, w.judge.last
	w.judge.mu.Unlock()
	if n > 0 {
		w.judge.Wrong("world", "%d changes in the tree after all had come to rest, %s the last", n, last)
	}
	if why = w.disorder(); why != "" {
		w.judge.Wrong("world", "does not stay at rest: %s", why)
	}
}

// doubt marks uploads whose image has gone from its cloud, as a launcher does that cannot boot from it.
func (w *world) doubt() {
	for _, key := range w.judge.lost() {
		if err := w.operate(func(ctx context.Context, store *zkmodel.Store) error {
			lock, u, err := store.LockUpload(ctx, key)
			if err != nil {
				return err
			}
			if u.Suspect = "the image is not there"; u.State == zkmodel.UploadReady {
				err = store.SaveUpload(ctx, lock, u)
			}
			return errors.Join(err, lock.Release(ctx))
		}); err != nil {
			w.judge.Note(operator, "doubt %s: %v", brief(key), err) // a builder may be at it
		}
	}
}

// lost are the ready uploads whose image is not in its cloud, and that nobody doubts: a person has deleted the image, or
// put the record back. No builder may have deleted it.
func (j *judge) lost() (list []zkmodel.UploadKey) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range slices.Sorted(maps.Keys(j.uploads)) {
		u := j.uploads[p]
		at := u.Provider + " " + u.ExternalID.Text()
		if u.Broken == nil && u.State == zkmodel.UploadReady && u.Suspect == "" && !j.there[at] && (j.vanished[at] || j.putBack[p]) {
			list = append(list, u.UploadKey)
		}
	}
	return list
}

// disorder tells what is not as it should be in the end.
func (w *world) disorder() string {
	j := w.judge
	j.mu.Lock()
	defer j.mu.Unlock()
	for p := range j.data {
		if strings.HasSuffix(p, "/request-build") {
			return p + " is left"
		}
	}
	for p, is := range j.found {
		if is {
			return p + " is left: a leaked image was found, or looked for again"
		}
	}
	there, why := j.records()
	if why != "" {
		return why
	}
	for _, provider := range clouds {
		for _, i := range w.clouds.Images(provider) {
			if site := i.Metadata[providers.MetaSite]; site == "" || site == "another" {
				continue
			}
			at := provider + " " + i.ExternalID
			if !there[at] {
				return "image " + i.ExternalID + " is in " + provider + " without a record"
			}
			delete(there, at)
		}
	}
	for at := range there {
		return at + " is recorded, and not in the cloud"
	}
	for _, s := range w.hosts {
		if n := s.Running(); n > 0 {
			return fmt.Sprintf("%d builds run on %s", n, s.name)
		}
		if file := j.leftover(s); file != "" {
			return file + " on " + s.name + " belongs to no build"
		}
	}
	return ""
}

// records tells what is not as it should be of builds and uploads, or else which images clouds have by them.
func (j *judge) records() (there map[string]bool, why string) {
	there = map[string]bool{}      // "provider id"
	serves := map[[2]string]bool{} // image-build, provider
	newest := map[string]string{}  // by image: its newest ready build
	for p, b := range j.builds {
		if b.Broken != nil || b.State != zkmodel.BuildReady && b.State != zkmodel.BuildFailed {
			return nil, fmt.Sprintf("build %s is %s, %v", p, b.State, b.Broken)
		}
		if b.State == zkmodel.BuildReady {
			newest[b.Image] = max(newest[b.Image], b.ID)
		}
	}
	for p, u := range j.uploads {
		if u.Broken != nil || u.State != zkmodel.UploadReady { // one that has failed is tried again, and goes then
			return nil, fmt.Sprintf("upload %s is %s, %v", p, u.State, u.Broken)
		}
		serves[[2]string{u.Image + "-" + u.Build, u.Provider}] = true
		there[u.Provider+" "+u.ExternalID.Text()] = true
	}
	for _, provider := range clouds {
		for _, image := range wanted[provider] {
			if build := image + "-" + newest[image]; !serves[[2]string{build, provider}] {
				return nil, "the newest build, " + build + ", is not ready in " + provider
			}
		}
	}
	return there, j.surplus()
}

// surplus tells what policy does not keep, and is there: it fills disks and clouds.
func (j *judge) surplus() string {
	sent, ready, failed := map[string]bool{}, map[string][]string{}, map[string]int{}
	in := map[[2]string]map[string]bool{} // by image, provider: builds, as one may have been sent again while a record was spoilt
	for _, u := range j.uploads {
		if !slices.Contains(wanted[u.Provider], u.Image) {
			return "upload " + brief(u.UploadKey) + " is not wanted there"
		}
		at := [2]string{u.Image, u.Provider}
		if in[at] == nil {
			in[at] = map[string]bool{}
		}
		if in[at][u.Build] = true; len(in[at]) > kept[u.Image] {
			return fmt.Sprintf("more than %d builds of %s are in %s", kept[u.Image], u.Image, u.Provider)
		}
		sent[zkmodel.BuildPath(u.Image, u.Build)] = true
	}
	for _, b := range j.builds {
		if b.State == zkmodel.BuildReady {
			ready[b.Image] = append(ready[b.Image], b.ID)
		} else if failed[b.Image]++; failed[b.Image] > 1 {
			return "more than one failed build of " + b.Image + " is kept"
		}
	}
	for image, ids := range ready {
		slices.Sort(ids)
		for _, id := range ids[:max(0, len(ids)-kept[image])] {
			if !sent[zkmodel.BuildPath(image, id)] {
				return "build " + image + "-" + id + " is kept, which is old, and no provider has it"
			}
		}
	}
	return ""
}

// leftover is a file of a host that belongs to no build.
func (j *judge) leftover(s *site) (file string) {
	dir := filepath.Join(s.folder, "images")
	_ = filepath.WalkDir(dir, func(p string, entry fs.DirEntry, err error) error {
		if err != nil || p == dir || entry.Name() == ".poolkeeper" {
			return err
		}
		rest, _ := filepath.Rel(dir, p)
		first, _, _ := strings.Cut(strings.TrimPrefix(rest, ".poolkeeper"+string(os.PathSeparator)), string(os.PathSeparator))
		if first == "builder_id.txt" || first == "lock" || first == "numbers.json" {
			return nil
		}
		name, _, _ := strings.Cut(first, ".")
		at := strings.LastIndexByte(name, '-')
		if at < 0 || j.builds[zkmodel.BuildPath(name[:at], name[at+1:])] == nil {
			file = rest
		}
		return nil
	})
	return file
}
