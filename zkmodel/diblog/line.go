package diblog

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// ExitLine begins the last line of a log, as Nodepool writes it.
const ExitLine = "Exit code: "

// pattern compiles a regular expression when it is first used: most processes read no build log.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

var (
	// trap is the trace of where diskimage-builder begins to clean up: what
	// follows is its consequence.
	trap = pattern(`^\++ .*:\s+trap_cleanup$|^\++ trap_cleanup$`)
	// tool is what a tool said that diskimage-builder's own code ran.
	tool = pattern(`^DEBUG \S+ \[-\] exec_sudo: (.*) exec_sudo \S+$`)
	// running and completed are of dib-run-parts.
	running   = pattern(`^dib-run-parts (?:.* )?Running \S*/([^/\s]+\.d)/(\S+)$`)
	completed = pattern(`^dib-run-parts \S+ completed$|^dib-run-parts -+ PROFILING`)
	// attached has what diskimage-builder takes for the loop device's name: all that
	// sudo printed, stderr too.
	attached = pattern(`^INFO \S+ \[-\] New block device \[(.*)$`)
	// nameless is sudo's remark on a host that cannot resolve its own name.
	nameless = pattern(`^sudo: unable to resolve host ([^\s:]+)`)
)

// What lines weigh. The last of the heaviest lines is the cause.
var weights = []struct {
	weight int
	lines  func() *regexp.Regexp
}{
	// Progress, and what only says that something before has failed.
	{0, pattern(`^(DEBUG|INFO|WARNING) \S+ \[-\]|^dib-run-parts |^[IWN]: |^(Get|Hit|Ign):\d|^\s+File "|^poolkeeper: |^` + ExitLine + `|^Usage: `)},
	{1, pattern(`^E: (Some index files failed|apt-get .* failed$|mmdebstrap failed|setup failed|Unable to correct)|exec_sudo failed$|\[-\] .*[Rr]ollback|^\S+Error: Command .* returned non-zero|^Traceback|^umount: |^device-mapper: remove|^losetup: .*(detach|No such device)|\btarget is busy\b`)},
	// What tools say when they can say it best.
	{3, pattern(`No space left on device|[Tt]otal journal size too big|^E: |^fatal: |^ERROR|\bnot set!|Killed\b|Out of memory|(?i:could ?n[o']t (connect|resolve))|No (match|package) |^[\w.]+(Exception|Error): `)},
	{2, pattern(`(?i)\b(errors?|fatal|cannot|can't|could not|couldn't|fail(ed|ure|s)?|invalid|unknown|denied|not found|no such|unable|refused|not permitted|is not|too (big|large|small|long)|no space|panic)\b`)},
}

// Line is what one line of a log says.
type Line struct {
	// Phase and Script run from this line on, as "install.d" and "50-packages".
	Phase, Script string
	Completed     bool // a script, or a phase, has ended
	Trap          bool // diskimage-builder begins to clean up after a failure
	// Weight says how much the line tells of a failure: 0 nothing, 1 that something has
	// failed, 2 what may be an error, 3 what tools say when they can say it best.
	Weight int

	said  string // where it weighs anything
	bonus int    // of what a tool said
	// undoes begins and undone ends that diskimage-builder takes back what it has made of block devices.
	undoes, undone bool
	fixed          string // a cause that is known for sure
}

// Read reads a line, with or without its end.
func Read(text []byte) Line {
	var line Line
	rest := bytes.TrimRight(text, "\r\n ")
	if n := stampLength(rest); n > 0 {
		rest = rest[n:]
	}
	switch {
	case len(rest) == 0:
		return line
	case rest[0] == '+':
		line.Trap = bytes.Contains(rest, trapWord) && trap().Match(rest)
		if isTrace(rest) {
			return line
		}
	case bytes.HasPrefix(rest, partsWord):
		if at := running().FindSubmatch(rest); at != nil {
			line.Phase, line.Script = string(at[1]), string(at[2])
		}
		line.Completed = completed().Match(rest)
	case bytes.Contains(rest, deviceWord):
		if at := attached().FindSubmatch(rest); at != nil && !bytes.HasPrefix(at[1], []byte("/")) {
			line.fixed = misnamed(string(at[1]))
			return line
		}
	}
	line.undoes, line.undone = bytes.Contains(rest, undoesWord), bytes.Contains(rest, undoneWord)
	if bytes.Contains(rest, toolWord) {
		if said := tool().FindSubmatch(rest); said != nil {
			rest, line.bonus = said[1], 1
		}
	}
	if mayTell(rest) {
		if line.Weight = weigh(string(rest)); line.Weight > 0 {
			line.said = strings.ToValidUTF8(strings.TrimSpace(string(rest)), "\uFFFD")
		}
	}
	return line
}

// The words without which an expression need not be tried.
var (
	partsWord  = []byte("dib-run-parts ")
	trapWord   = []byte("trap_cleanup")
	deviceWord = []byte("New block device [")
	toolWord   = []byte("exec_sudo: ")
	undoesWord = []byte("[-] Calling rollback for ")
	undoneWord = []byte("[-] Rollback complete")
)

// stampEnd is behind the time that diskimage-builder puts before each line.
const stampEnd = " | "

// stampLength is how long that time is, with its end; 0 without one.
func stampLength(line []byte) int {
	const form = "0000-00-00 00:00:00.0"
	if len(line) < len(form) {
		return 0
	}
	for i, want := range []byte(form) {
		if digit := line[i] >= '0' && line[i] <= '9'; want == '0' && !digit || want != '0' && line[i] != want {
			return 0
		}
	}
	n := len(form)
	for n < len(line) && line[n] >= '0' && line[n] <= '9' {
		n++
	}
	if !bytes.HasPrefix(line[n:], []byte(stampEnd)) {
		return 0
	}
	return n + len(stampEnd)
}

// Stamp is when a line was said, as "2026-11-22 03:57:42.666"; "" if the line does not tell.
func Stamp(line []byte) string { return string(line[:max(0, stampLength(line)-len(stampEnd))]) }

// Unstamped is a line without the time that diskimage-builder puts before it.
func Unstamped(line string) string { return line[stampLength([]byte(line)):] }

// isTrace reports whether a line is what a shell prints of a command before it runs it.
func isTrace(line []byte) bool {
	rest := bytes.TrimLeft(line, "+")
	return len(rest) < len(line) && bytes.HasPrefix(rest, []byte(" "))
}

// IsTrace reports whether a line is what a shell prints of a command before it runs it,
// behind the time that diskimage-builder puts before each line.
func IsTrace(line string) bool { return isTrace([]byte(Unstamped(line))) }

// weigh tells how much a line says about why a build failed.
func weigh(line string) int {
	for _, w := range weights {
		if w.lines().MatchString(line) {
			return w.weight
		}
	}
	return 0
}

// triggers are the beginnings of words, in lower case, one of which every line has that
// weighs anything: most lines have none, and a log may have a million.
var triggers = func() (of [256][][]byte) {
	for _, word := range []string{
		"err", "exception", "fatal", "fail", "cannot", "can't", "could", "invalid", "unknown", "denied", "not found",
		"no such", "unable", "refused", "not permitted", "is not", "too ", "no space", "panic", "killed",
		"out of memory", "no match", "no pack", "not set", "e: ", "rollback", "traceback",
	} {
		for _, first := range []byte{word[0], word[0] - 'a' + 'A'} {
			of[first] = append(of[first], []byte(word))
		}
	}
	return of
}()

// mayTell reports whether a line has a word that may weigh anything.
func mayTell(line []byte) bool {
	for i, c := range line {
		for _, word := range triggers[c] {
			// The second letter decides nearly always; |0x20 makes it small.
			if len(line)-i >= len(word) && line[i+1]|0x20 == word[1]|0x20 && bytes.EqualFold(line[i:i+len(word)], word) {
				return true
			}
		}
	}
	return false
}
