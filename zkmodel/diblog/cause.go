package diblog

import "strings"

// Cause is what a log tells of a build that failed.
type Cause struct {
	Line  string // the line that says what went wrong, and what mends it if we know; "" if none does
	Place string // the phase and script that ran last and did not end, as "install.d/50-x"; or ""
}

// longestCause is the longest line that is quoted, in bytes.
const longestCause = 240

// Finder reads the lines of a log, one after the other, for what ended the build. The
// zero value has read none.
type Finder struct {
	cause Cause
	best  int  // what the line of cause weighs
	lines int  // that were read
	at    int  // the number of the line of cause
	over  bool // what follows tells nothing more
	// undoing: diskimage-builder takes back what it has made of block devices.
	undoing bool
}

// Cause is the line that says why the build failed, as far as the lines tell, and its
// number, which begins with 1; 0 when none says so.
func (f *Finder) Cause() (Cause, int) {
	c := f.cause
	c.Line = clip(c.Line)
	if c.Line == "" {
		return c, 0
	}
	return c, f.at
}

// Over reports whether diskimage-builder began to clean up after a failure, or the cause
// is known for sure: what follows is its consequence.
func (f *Finder) Over() bool { return f.over }

// Add reads the next line, with or without its end.
func (f *Finder) Add(text []byte) Line {
	f.lines++
	line := Read(text)
	if f.over || line.Trap {
		f.over = true
		return line
	}
	if line.fixed != "" {
		f.cause, f.at, f.over = Cause{Line: line.fixed}, f.lines, true
		return line
	}
	switch {
	case line.Script != "":
		// What an earlier script said did not end the build.
		f.cause, f.best = Cause{Place: line.Phase + "/" + line.Script}, 0
	case line.Completed:
		f.cause, f.best = Cause{}, 0
	}
	f.undoing = line.undoes || f.undoing && !line.undone
	w := line.Weight + line.bonus
	if f.undoing {
		w = min(w, 1) // what fails now is a consequence
	}
	if line.Weight > 0 && w >= f.best && (!f.undoing || f.best == 0) {
		f.cause.Line, f.best, f.at = line.said, w, f.lines
	}
	return line
}

// CauseOf finds the cause in a log, or the end of one.
func CauseOf(text string) Cause {
	var f Finder
	for line := range strings.Lines(text) {
		if f.Add([]byte(line)); f.Over() {
			break
		}
	}
	cause, _ := f.Cause()
	return cause
}

// misnamed says that a remark of sudo's became part of the loop device's name, and
// what silences it.
func misnamed(remark string) string {
	line := clip(remark) + " (diskimage-builder takes that for the name of its loop device"
	if host := nameless().FindStringSubmatch(remark); host != nil {
		return line + `: add the line "127.0.1.1 ` + host[1] + `" to /etc/hosts)`
	}
	return line + ": sudo must not print it)"
}

func clip(line string) string {
	if len(line) > longestCause {
		return strings.ToValidUTF8(line[:longestCause], "") + " …"
	}
	return line
}
