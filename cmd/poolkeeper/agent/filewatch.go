package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
	"github.com/hashicorp/go-hclog"
)

// maxLinks is how many links may lead from one to another.
const maxLinks = 40

// fileWatch hears of changes of files. It watches the folders that they lie in, so
// that it hears of those that are replaced, and of those that their links lead to. Where
// that is not possible it hears nothing.
type fileWatch struct {
	log     hclog.Logger
	watcher *fsnotify.Watcher // nil when there can be none
	events  <-chan fsnotify.Event
	errors  <-chan error
	files   map[string]bool // that are followed, links on the way included
	folders map[string]bool // without links; that are watched, or cannot be
}

// newFileWatch hears of no file yet.
func newFileWatch(log hclog.Logger) *fileWatch {
	w := &fileWatch{log: log, folders: map[string]bool{}}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("Files of the configuration cannot be watched; they are read now and then instead", "every", reloadEvery, "error", err)
		return w
	}
	w.watcher, w.events, w.errors = watcher, watcher.Events, watcher.Errors
	return w
}

func (w *fileWatch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close() // nothing is lost with it
	}
}

// follow makes it these files that are followed.
func (w *fileWatch) follow(files []string) {
	if w.watcher == nil {
		return
	}
	w.files = map[string]bool{}
	folders := map[string]bool{}
	for _, file := range files {
		for _, step := range stepsTo(file) {
			w.files[step] = true
			folders[filepath.Dir(step)] = true
		}
	}
	for folder := range w.folders {
		if !folders[folder] {
			_ = w.watcher.Remove(folder) // it may be gone, and its watch with it
			delete(w.folders, folder)
		}
	}
	for folder := range folders {
		if w.folders[folder] {
			continue
		}
		w.folders[folder] = true
		switch err := w.watcher.Add(folder); {
		case err == nil:
		case errors.Is(err, fs.ErrNotExist):
			delete(w.folders, folder) // it may come
		default:
			w.log.Warn("A folder of the configuration cannot be watched; its files are read now and then instead",
				"folder", folder, "every", reloadEvery, "error", err)
		}
	}
}

// concerns tells whether an event may mean that a file has changed. Anything that comes or
// goes in a folder may be a link on the way to one.
func (w *fileWatch) concerns(e fsnotify.Event) bool {
	if e.Has(fsnotify.Remove|fsnotify.Rename) && w.folders[e.Name] {
		delete(w.folders, e.Name) // the watch went with the folder
	}
	return e.Has(fsnotify.Create|fsnotify.Remove|fsnotify.Rename) || w.files[e.Name]
}

// stepsTo lists a path and what its links lead to, each in its folder's own name. A link
// to a folder above is not among them.
func stepsTo(file string) []string {
	var steps []string
	for range maxLinks {
		if folder, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil {
			file = filepath.Join(folder, filepath.Base(file))
		}
		steps = append(steps, filepath.Clean(file))
		target, err := os.Readlink(file)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(file), target)
		}
		file = target
	}
	return steps
}
