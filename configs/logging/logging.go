// Package logging reads Nodepool's logging files (-l), which are Python's: what of one a daemon
// of ours can do, and what it cannot.
package logging

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Settings are what a daemon can do of a logging file.
type Settings struct {
	Level    string   // trace, debug, info, warn or error; "" says nothing of it
	File     string   // where lines go; "" is no file
	Stderr   bool     // lines go to stderr, too, or, without a file, only there
	Warnings []string // FILE:LINE: what is not done, in the order of the file
}

// ours is the logger that counts: all of Nodepool's are below it.
const ours = "nodepool"

// document is a logging file, whatever it is written in.
type document struct {
	path              string
	loggers, handlers map[string]section
	warnings          []warning
}

// section is a logger or a handler.
type section struct {
	line             int
	level            string
	handlers         []string
	propagate        bool
	class, file      string
	stream, rotating bool
}

type warning struct {
	line int
	text string
}

// Read reads a file: YAML or JSON by its ending, else Python's INI. What cannot be read at all
// is a warning, too, and lines go to stderr: a daemon starts without its logging file.
func Read(path string) Settings {
	d := &document{path: path, loggers: map[string]section{}, handlers: map[string]section{}}
	text, err := os.ReadFile(path)
	if err != nil {
		return Settings{Stderr: true, Warnings: []string{fmt.Sprintf("%v: lines go to stderr", err)}}
	}
	if slices.Contains([]string{".yml", ".yaml", ".json"}, filepath.Ext(path)) {
		err = d.yaml(text)
	} else {
		d.ini(string(text))
	}
	if err != nil {
		return Settings{Stderr: true, Warnings: []string{oneLine(fmt.Sprintf("%s: %v: lines go to stderr", path, err))}}
	}
	return d.settings()
}

// warn notes what is not done.
func (d *document) warn(line int, format string, args ...any) {
	d.warnings = append(d.warnings, warning{line, fmt.Sprintf(format, args...)})
}

// settings is what follows from a file.
func (d *document) settings() Settings {
	s := Settings{}
	root, logger := d.loggers["root"], d.loggers[ours]
	_, named := d.loggers[ours]
	s.Level = level(logger.level)
	names := logger.handlers
	if s.Level == "" {
		s.Level = level(root.level)
	}
	if !named || logger.propagate {
		names = append(slices.Clone(names), root.handlers...)
	}
	for name, l := range d.loggers {
		if name != ours && name != "root" {
			d.warn(l.line, "logger %s has no effect: one level counts, that of %s, or else of root", name, ours)
		}
	}
	most := ""
	for _, name := range names {
		h, known := d.handlers[name]
		switch {
		case !known:
			d.warn(max(logger.line, root.line), "there is no handler %s", name)
			continue
		case h.file != "" && s.File != "" && s.File != h.file:
			d.warn(h.line, "handler %s has no effect: one file is written, %s", name, s.File)
			continue
		case h.file != "":
			s.File = h.file
		case h.stream:
			s.Stderr = true
		default:
			d.warn(h.line, "handler %s has no effect: class %q is none that writes a file or a stream", name, h.class)
			continue
		}
		if h.rotating {
			d.warn(h.line, "handler %s does not rotate its file, which is written on when it is moved: logrotate does that", name)
		}
		if v := level(h.level); most == "" || rank(v) < rank(most) {
			most = v
			if most == "" {
				most = "trace"
			}
		}
	}
	if rank(most) > rank(s.Level) {
		s.Level = most
	}
	s.Stderr = s.Stderr || s.File == ""
	slices.SortStableFunc(d.warnings, func(a, b warning) int { return a.line - b.line })
	for _, w := range d.warnings {
		s.Warnings = append(s.Warnings, oneLine(d.path+":"+strconv.Itoa(w.line)+": "+w.text))
	}
	return s
}

// oneLine is a text that moves nothing on a terminal, whatever names the file has.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// levels are ours, in their order.
var levels = []string{"trace", "debug", "info", "warn", "error"}

// rank is how much a level leaves out; what says nothing leaves out nothing.
func rank(level string) int { return slices.Index(levels, level) }

// level is Python's level, by its name or number, as ours; "" for what says nothing.
func level(text string) string {
	n, err := strconv.Atoi(text)
	if err != nil {
		n = map[string]int{"DEBUG": 10, "INFO": 20, "WARN": 30, "WARNING": 30, "ERROR": 40, "CRITICAL": 50, "FATAL": 50}[strings.ToUpper(text)]
	}
	switch {
	case n <= 0:
		return ""
	case n <= 10:
		return "debug"
	case n <= 20:
		return "info"
	case n <= 30:
		return "warn"
	}
	return "error"
}

// handler fills in what a class of Python's does.
func (s *section) handler(class, file string) {
	s.class, s.file = class, file
	short := class[strings.LastIndexByte(class, '.')+1:]
	switch short {
	case "StreamHandler":
		s.stream, s.file = true, ""
	case "RotatingFileHandler", "TimedRotatingFileHandler":
		s.rotating = true
	case "FileHandler", "WatchedFileHandler":
	default:
		s.file = ""
	}
}
