package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/hook"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/source"
	"poolkeeper/zkmodel/wave"
)

// Whole is what of a tree nobody can make again: the records of images, and what stands below
// /poolkeeper since people said it or to outlive daemons.
type Whole struct {
	Time    time.Time
	By      string
	Records []Record // sorted by path
	// UnderWay are waves that are not over, and that it does not have.
	UnderWay []string
}

// Record is a znode, or a folder of which only the count is kept.
type Record struct {
	Path string  `json:"path"`
	Text *string `json:"text,omitempty"`
	// Bytes are its data where that is no text.
	Bytes []byte `json:"bytes,omitempty"`
	// Made is the transaction that made a build or upload, by which other records know it.
	Made int64 `json:"czxid,omitempty"`
	// Version is that of a flag, by which zkmodel.Pauses knows it.
	Version int32 `json:"version,omitempty"`
	// Next is the number that a folder would have given next.
	Next int `json:"next,omitempty"`
}

// data is what the znode has.
func (r *Record) data() []byte {
	if r.Text != nil {
		return []byte(*r.Text)
	}
	return r.Bytes
}

// recordOf makes a record of what was read.
func recordOf(at string, data []byte) Record {
	if !utf8.Valid(data) {
		return Record{Path: at, Bytes: data}
	}
	text := string(data)
	return Record{Path: at, Text: &text}
}

// plain are the records below /poolkeeper that are brought back as they are, in this order:
// what refers to others behind them.
func plain() []string {
	return []string{
		zkmodel.SitePath, zkmodel.PausesRoot, fleet.BlobsPath, fleet.VersionsPath, fleet.CurrentPath, hook.Root + "/seen", hook.Root + "/queue",
		source.Root, wave.Root + "/params", wave.Root + "/status", wave.Root + "/states", wave.Root + "/jobs", wave.Root + "/result-data", wave.Root + "/results",
		wave.Root + "/requests", wave.Root + "/schedules",
	}
}

// fitted are those that name a build by the transaction that made it, or the version of a
// flag, which are others in another tree.
func fitted() []string {
	return []string{wave.HoldPath, zkmodel.PausesPath, zkmodel.VerdictsRoot, zkmodel.CanariesRoot}
}

// rank is the place of a path in the order of plain and fitted; false for any other.
func rank(at string) (int, bool) {
	n := slices.IndexFunc(slices.Concat(plain(), fitted()), func(root string) bool { return within(root, at) })
	return n, n >= 0
}

func within(root, at string) bool { return at == root || strings.HasPrefix(at, root+"/") }

// ReadWhole reads a tree. What is written meanwhile may be missing.
//
// Errors: recipe.ErrUnread where part of it cannot be read.
func ReadWhole(ctx context.Context, s *recipe.Session) (*Whole, error) {
	w := &Whole{}
	d, unread, err := Read(ctx, s)
	if err == nil && len(unread) > 0 {
		err = fmt.Errorf("%w: %w", recipe.ErrUnread, errors.Join(unread...))
	}
	if err != nil {
		return nil, err
	}
	folders := map[string]bool{}
	for _, at := range slices.Sorted(maps.Keys(d)) {
		stat, there, err := s.Exists(ctx, at)
		if err != nil {
			return nil, err
		}
		if !there {
			continue // deleted meanwhile
		}
		r := recordOf(at, []byte(d[at]))
		switch p, _ := placeOf(at); p.kind {
		case pause:
			r.Version = stat.Version
		case build:
			r.Made, folders[path.Dir(at)] = stat.Czxid, true
		case upload:
			r.Made, folders[path.Dir(at)] = stat.Czxid, true
		case request:
		}
		w.Records = append(w.Records, r)
	}
	images, err := s.Children(ctx, zkmodel.ImagesRoot)
	if err != nil && !errors.Is(err, recipe.ErrNoNode) {
		return nil, err
	}
	for _, image := range images {
		if folder := zkmodel.BuildsPath(image); isFolder(folder) { // another name is of no image
			folders[folder] = true
		}
	}
	for folder := range folders {
		stat, there, err := s.Exists(ctx, folder)
		if err != nil {
			return nil, err
		}
		if next, _ := number(recipe.SequentialName(stat)); there && next > 0 {
			w.Records = append(w.Records, Record{Path: folder, Next: next})
		}
	}
	own, underWay, err := readOwn(ctx, s)
	if err != nil {
		return nil, err
	}
	w.Records, w.UnderWay = append(w.Records, own...), underWay
	if err := w.dropPauses(); err != nil {
		return nil, err
	}
	slices.SortFunc(w.Records, func(a, b Record) int { return strings.Compare(a.Path, b.Path) })
	return w, nil
}

// readOwn reads what is ours, and which waves are not over. The version of the fleet that is
// to run is read first: what it refers to is there then.
func readOwn(ctx context.Context, s *recipe.Session) (list []Record, underWay []string, err error) {
	o := &ownReader{s: s}
	o.walk(ctx, fleet.CurrentPath)
	requested, over := o.children(ctx, wave.Root+"/requests"), o.children(ctx, wave.Root+"/results")
	for _, id := range requested {
		if !slices.Contains(over, id) {
			underWay = append(underWay, id)
		}
	}
	for _, root := range slices.Concat(plain(), fitted()) {
		switch folder := path.Base(root); {
		case root == fleet.CurrentPath:
		case path.Dir(root) == wave.Root && root != wave.HoldPath && folder != "schedules":
			for _, id := range over {
				if slices.Contains(requested, id) {
					o.walk(ctx, root+"/"+id)
				}
			}
		default:
			o.walk(ctx, root)
		}
	}
	if o.err != nil {
		return nil, nil, fmt.Errorf("read what stands below %s: %w", zkmodel.OwnRoot, o.err)
	}
	return o.list, underWay, nil
}

// ownReader reads what is ours, until an error.
type ownReader struct {
	s    *recipe.Session
	list []Record
	err  error
}

func (o *ownReader) children(ctx context.Context, at string) (names []string) {
	if o.err != nil {
		return nil
	}
	if names, o.err = o.s.Children(ctx, at); errors.Is(o.err, recipe.ErrNoNode) {
		o.err = nil
	}
	slices.Sort(names)
	return names
}

// walk reads a znode and what is below it, but for locks, what lives with a session, and
// folders, which are made with what is in them.
func (o *ownReader) walk(ctx context.Context, at string) {
	names := o.children(ctx, at)
	if o.err != nil {
		return
	}
	data, stat, err := o.s.Get(ctx, at)
	if errors.Is(err, recipe.ErrNoNode) {
		return
	}
	if o.err = err; err != nil || stat.EphemeralOwner != 0 {
		return
	}
	if _, root := slices.BinarySearch(roots(), at); len(data) > 0 || len(names) == 0 && (!root || at == wave.HoldPath) {
		r := recordOf(at, data)
		if at == wave.HoldPath {
			r.Version = stat.Version
		}
		o.list = append(o.list, r)
	}
	for _, name := range names {
		if name != "lock" {
			o.walk(ctx, at+"/"+name)
		}
	}
}

// roots are plain and fitted, sorted.
func roots() []string {
	all := slices.Concat(plain(), fitted())
	slices.Sort(all)
	return all
}

// made are the transactions that created builds and uploads, by path.
func (w *Whole) made() map[string]int64 {
	made := map[string]int64{}
	for _, r := range w.Records {
		if r.Made != 0 {
			made[r.Path] = r.Made
		}
	}
	return made
}

// Images are the records of images with their creation ids, in the shape of Nodepool's file.
func (w *Whole) Images() Data {
	d := Data{}
	for _, r := range w.Records {
		if _, err := placeOf(r.Path); err == nil && r.Next == 0 {
			d[r.Path] = withID(string(r.data()), r.Made)
		}
	}
	return d
}

// Own are how many records are not of images.
func (w *Whole) Own() (n int) {
	for _, r := range w.Records {
		if _, ours := rank(r.Path); ours {
			n++
		}
	}
	return n
}

// equal reports whether two records have the same data.
func (r *Record) equal(data []byte) bool { return bytes.Equal(r.data(), data) }
