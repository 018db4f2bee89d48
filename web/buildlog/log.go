package buildlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
)

// maxFollowers is how many logs are followed at a time; each costs a connection
// and an open file.
const maxFollowers = 64

// Handler serves build logs. It does not ask who may see them.
type Handler struct {
	logs      Logs
	images    func() []*zkmodel.Image
	log       hclog.Logger
	followers chan struct{} // a place for each log that is followed
	indexes   indexes
}

// NewHandler makes a Handler of a host's logs. images are what the tree holds, to say
// who has a log that is not here; nil when it is not followed.
func NewHandler(logs Logs, images func() []*zkmodel.Image, log hclog.Logger) *Handler {
	return &Handler{logs: logs, images: images, log: log, followers: make(chan struct{}, maxFollowers)}
}

// Path is the path of a build's log.
func Path(image, build string) string { return "/log/" + url.PathEscape(image+"-"+build) }

// ServeLog serves /log/IMAGE-BUILD: the log so far, or a part of it (Range).
// follow=1 goes on until the build has ended; offset=N begins at byte N, a
// negative one that many bytes before the end.
func (h *Handler) ServeLog(w http.ResponseWriter, r *http.Request) {
	image, build, err := parseLogName(r.PathValue("name"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	query := r.URL.Query()
	follow, offset, err := parseFollow(query.Get("follow"), query.Get("offset"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	file, more, ok := h.opened(w, image, build)
	if !ok {
		return
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		h.logFailed(w, image, build, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	if follow && r.Method == http.MethodGet {
		h.follow(w, r, file, more, start(offset, info.Size()))
		return
	}
	w.Header().Set("ETag", fmt.Sprintf(`"%x-%x"`, info.Size(), info.ModTime().UnixNano()))
	body := io.NewSectionReader(file, 0, info.Size()) // it may be growing
	http.ServeContent(w, r, "", info.ModTime(), body)
}

// opened opens a log that is asked for. Where that cannot be done it answers, and ok is false.
func (h *Handler) opened(w http.ResponseWriter, image, build string) (file *os.File, more More, ok bool) {
	file, more, err := h.open(image, build)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, layout.Visible(h.whereLogIs(image, build)), http.StatusNotFound) // a record may hold control characters
		return nil, nil, false
	case err != nil:
		h.logFailed(w, image, build, err)
		return nil, nil, false
	}
	return file, more, true
}

// parseLogName splits IMAGE-BUILD and checks both: they become a file's name.
func parseLogName(name string) (image, build string, err error) {
	if image, build, err = zkmodel.ParseBuildName(name); err != nil {
		return "", "", err
	}
	return image, build, errors.Join(configs.CheckName("image", image), configs.CheckName("build", build))
}

// parseFollow reads the parameters of a log.
func parseFollow(follow, offset string) (on bool, at int64, err error) {
	if follow != "" {
		if on, err = strconv.ParseBool(follow); err != nil {
			return false, 0, fmt.Errorf("follow=%q: want 1 or 0", follow)
		}
	}
	if offset != "" {
		if at, err = strconv.ParseInt(offset, 10, 64); err != nil {
			return false, 0, fmt.Errorf("offset=%q: want a number of bytes", offset)
		}
		if !on {
			return false, 0, errors.New("offset= goes with follow=1; without it, ask for a Range")
		}
	}
	return on, at, nil
}

// start is where to begin in a log of size bytes.
func start(offset, size int64) int64 {
	if offset < 0 {
		return max(0, size+offset)
	}
	return min(offset, size)
}

// follow sends the log from an offset on, and what comes, until the build has
// ended. A stream that ends in any other way is broken off, so that the client
// can tell, and come back with an offset.
func (h *Handler) follow(w http.ResponseWriter, r *http.Request, file *os.File, more More, offset int64) {
	done, ok := h.enter(w)
	if !ok {
		return
	}
	defer done()
	control := http.NewResponseController(w)
	for {
		n, err := io.Copy(w, io.NewSectionReader(file, offset, math.MaxInt64-offset))
		offset += n
		if err == nil {
			err = control.Flush()
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		switch {
		case more == nil:
			return
		case more(r.Context(), offset):
		case r.Context().Err() != nil:
			panic(http.ErrAbortHandler)
		default:
			_ = control.Flush() // time for the last bytes, however long ago the others were
			return
		}
	}
}

// enter takes a place among those who follow a log, and says when there is none.
func (h *Handler) enter(w http.ResponseWriter) (leave func(), ok bool) {
	select {
	case h.followers <- struct{}{}:
		w.Header().Set("X-Accel-Buffering", "no") // or nginx keeps what should be seen now
		return func() { <-h.followers }, true
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d logs are being followed already", maxFollowers), http.StatusServiceUnavailable)
		return nil, false
	}
}

// whereLogIs tells who has a log that is not here, as far as the record knows.
func (h *Handler) whereLogIs(image, build string) string {
	missing := fmt.Sprintf("there is no log of build %s-%s on this host", image, build)
	if h.images == nil {
		return missing
	}
	b := findBuild(h.images(), image, build)
	switch {
	case b == nil:
		return missing + ", and no record of the build"
	case IsURL(b.Log):
		return missing + "; see " + b.Log
	case b.Builder != "":
		return missing + "; it was built on " + b.Builder
	}
	return missing
}

// IsURL reports whether a record's text may become a link.
func IsURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func findBuild(images []*zkmodel.Image, image, build string) *zkmodel.BuildTree {
	for _, i := range images {
		if i.Name != image {
			continue
		}
		for _, b := range i.Builds {
			if b.ID == build {
				return b
			}
		}
	}
	return nil
}

// logFailed answers when a log is there but cannot be read.
func (h *Handler) logFailed(w http.ResponseWriter, image, build string, err error) {
	h.log.Error("Cannot read build log", "image", image, "build", build, "error", err)
	http.Error(w, "the log could not be read; the daemon's log says why", http.StatusInternalServerError)
}
