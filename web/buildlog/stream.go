package buildlog

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

var rowsTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("rows").Parse(rowsText))
})

// ServeFollow tells the page of further lines, as server-sent events, until the build has
// ended: from=N begins with line N, and an id is the number of the line that comes next.
func (h *Handler) ServeFollow(w http.ResponseWriter, r *http.Request) {
	image, build, err := parseLogName(r.PathValue("name"))
	from, ferr := strconv.Atoi(r.URL.Query().Get("from"))
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		from, ferr = strconv.Atoi(last)
	}
	if err != nil || ferr != nil || from < 1 {
		http.Error(w, "want the name of a build, and from=N", http.StatusBadRequest)
		return
	}
	file, more, ok := h.opened(w, image, build)
	if !ok {
		return
	}
	defer func() { _ = file.Close() }() // it was only read
	done, free := h.enter(w)
	if !free {
		return
	}
	defer done()
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet {
		return
	}
	s := &follower{
		w: w, control: http.NewResponseController(w), file: file, from: from,
		here: PagePath(image, build), index: h.indexes.of(image + "-" + build),
	}
	for {
		if err := s.send(more == nil); err != nil {
			h.log.Debug("Log is no longer followed", "image", image, "build", build, "error", err)
			panic(http.ErrAbortHandler)
		}
		switch {
		case s.over:
			return
		case more == nil: // it is read to its end
		case more(r.Context(), s.read):
		case r.Context().Err() != nil:
			panic(http.ErrAbortHandler)
		default:
			more = nil // the rest, and the end
		}
	}
}

// follower is one page that follows a log.
type follower struct {
	w       http.ResponseWriter
	control *http.ResponseController
	file    *os.File
	index   *index
	here    string

	generation int   // of the log; 0 before the first look
	read       int64 // bytes that were looked at
	from       int   // the line that comes next
	over       bool
}

// send tells of the lines that have ended, and at the end of a log of what it ends with.
func (s *follower) send(last bool) error {
	s.index.mu.Lock()
	whole, lines, err := s.look(last)
	next, total, generation := s.index.lines+1, s.index.total(), s.index.generation
	s.index.mu.Unlock()
	if err != nil {
		return err
	}
	if s.generation != 0 && s.generation != generation || s.from > total+1 {
		s.over = true // it is another log than that of the page
		return s.tell("again", nil)
	}
	s.generation = generation
	if len(lines) > 0 {
		var text bytes.Buffer
		if err := rowsTemplate().ExecuteTemplate(&text, "rows", rows(lines, s.here+"?from="+strconv.Itoa(lines[0].number), nil)); err != nil {
			return fmt.Errorf("write lines: %w", err)
		}
		s.from = lines[len(lines)-1].number + 1
		if err := s.tell("lines", text.Bytes()); err != nil {
			return err
		}
		if s.from < next || last && whole {
			return s.send(last)
		}
	}
	if last && whole {
		s.over = true
		return s.tell("end", nil)
	}
	return s.control.Flush()
}

// look reads the next lines. It holds the index.
func (s *follower) look(last bool) (whole bool, lines []textLine, err error) {
	whole, err = s.index.advance(s.file, time.Now().Add(patience))
	if err != nil {
		return false, nil, err
	}
	s.read = s.index.read
	count := s.index.lines + 1 - s.from
	if last && whole {
		count = s.index.total() + 1 - s.from
	}
	if count < 1 {
		return whole, nil, nil
	}
	if count > mostLines { // the page would not keep more
		s.from += count - mostLines
		count = mostLines
	}
	lines, err = s.index.window(s.file, s.from, count)
	return whole, lines, err
}

// tell sends an event.
func (s *follower) tell(event string, data []byte) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "event: %s\nid: %d\n", event, s.from)
	for line := range bytes.Lines(data) {
		fmt.Fprintf(&out, "data: %s\n", bytes.TrimRight(line, "\n"))
	}
	if len(data) == 0 {
		out.WriteString("data:\n")
	}
	out.WriteString("\n")
	if _, err := s.w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("send lines: %w", err)
	}
	return s.control.Flush()
}
