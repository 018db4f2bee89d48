package buildlog

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"poolkeeper/builder/dib"
)

// Cause is what a log tells of a build that failed.
type Cause struct {
	Line  string // the line that says what went wrong, and what mends it if we know; "" if none does
	Place string // the phase and script that ran last and did not end, as "install.d/50-x"; or ""
}

// causeWindow is how much of the end of a log is searched, in bytes.
// diskimage-builder traces its cleaning up, so the cause is not near the end.
const causeWindow = 1 << 20

// longestCause is the longest line that is quoted, in bytes.
const longestCause = 240

// FindCause reads a log for what ended the build.
func FindCause(log string) (Cause, error) {
	f, err := os.Open(log)
	if err != nil {
		return Cause{}, fmt.Errorf("read log: %w", err)
	}
	defer func() { _ = f.Close() }()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return Cause{}, fmt.Errorf("read log: %w", err)
	}
	start := max(0, end-causeWindow)
	text, err := io.ReadAll(io.NewSectionReader(f, start, end-start))
	if err != nil {
		return Cause{}, fmt.Errorf("read log: %w", err)
	}
	return causeOf(strings.ToValidUTF8(string(text), "\uFFFD")), nil
}

var (
	// stamp is the time that diskimage-builder puts before each line.
	stamp = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \| `)
	// trap is the trace of where diskimage-builder begins to clean up: what
	// follows is its consequence.
	trap = regexp.MustCompile(`^\++ .*:\s+trap_cleanup$|^\++ trap_cleanup$`)
	// tool is what a tool said that diskimage-builder's own code ran.
	tool = regexp.MustCompile(`^DEBUG \S+ \[-\] exec_sudo: (.*) exec_sudo \S+$`)
	// running and completed are of dib-run-parts.
	running   = regexp.MustCompile(`^dib-run-parts Running \S*/([^/\s]+\.d/\S+)$`)
	completed = regexp.MustCompile(`^dib-run-parts \S+ completed$|^dib-run-parts -+ PROFILING`)
	// attached has what diskimage-builder takes for the loop device's name: all that
	// sudo printed, stderr too.
	attached = regexp.MustCompile(`^INFO \S+ \[-\] New block device \[(.*)$`)
	// nameless is sudo's remark on a host that cannot resolve its own name.
	nameless = regexp.MustCompile(`^sudo: unable to resolve host ([^\s:]+)`)
)

// What lines weigh. The last of the heaviest lines is the cause.
var weights = []struct {
	weight int
	lines  *regexp.Regexp
}{
	// Progress, and what only says that something before has failed.
	{0, regexp.MustCompile(`^(DEBUG|INFO|WARNING) \S+ \[-\]|^dib-run-parts |^[IWN]: |^(Get|Hit|Ign):\d|^\s+File "|^poolkeeper: |^` + dib.ExitLine + `|^Usage: `)},
	{1, regexp.MustCompile(`^E: (Some index files failed|apt-get .* failed$|mmdebstrap failed|setup failed|Unable to correct)|exec_sudo failed$|\[-\] .*[Rr]ollback|^\S+Error: Command .* returned non-zero|^Traceback`)},
	// What tools say when they can say it best.
	{3, regexp.MustCompile(`No space left on device|[Tt]otal journal size too big|^E: |^fatal: |^ERROR|\bnot set!|Killed\b|Out of memory|(?i:could ?n[o']t (connect|resolve))|No (match|package) |^[\w.]+(Exception|Error): `)},
	{2, regexp.MustCompile(`(?i)\b(errors?|fatal|cannot|can't|could not|couldn't|fail(ed|ure|s)?|invalid|unknown|denied|not found|no such|unable|refused|not permitted|is not|too (big|large|small|long)|no space|panic)\b`)},
}

// causeOf finds the cause in the lines of a log.
func causeOf(text string) Cause {
	var cause Cause
	best := 0
	for line := range strings.Lines(text) {
		line = stamp.ReplaceAllString(strings.TrimRight(line, "\r\n "), "")
		if trap.MatchString(line) {
			break
		}
		if at := attached.FindStringSubmatch(line); at != nil && !strings.HasPrefix(at[1], "/") {
			return Cause{Line: misnamed(at[1])}
		}
		bonus := 0
		if said := tool.FindStringSubmatch(line); said != nil {
			line, bonus = said[1], 1
		}
		switch at := running.FindStringSubmatch(line); {
		case shellTrace.MatchString(line):
			continue
		case at != nil:
			// What an earlier script said did not end the build.
			cause, best = Cause{Place: at[1]}, 0
		case completed.MatchString(line):
			cause, best = Cause{}, 0
		}
		if w := weigh(line); w > 0 && w+bonus >= best {
			cause.Line, best = strings.TrimSpace(line), w+bonus
		}
	}
	cause.Line = clip(cause.Line)
	return cause
}

// misnamed says that a remark of sudo's became part of the loop device's name, and
// what silences it.
func misnamed(remark string) string {
	line := clip(remark) + " (diskimage-builder takes that for the name of its loop device"
	if host := nameless.FindStringSubmatch(remark); host != nil {
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

// weigh tells how much a line says about why a build failed.
func weigh(line string) int {
	for _, w := range weights {
		if w.lines.MatchString(line) {
			return w.weight
		}
	}
	return 0
}
