package buildlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"poolkeeper/zkmodel/diblog"
)

// Bounds of what is known of a log, whatever its length.
const (
	maxMarks   = 4096      // lines whose place is known
	maxPhases  = 100       // of diskimage-builder, in the order in which they ran
	maxErrors  = 200       // lines that tell of errors
	maxLine    = 4 << 10   // bytes of a line that are read and shown
	chunk      = 256 << 10 // bytes that are read at a time
	firstMarks = 128       // lines from one mark to the next, at first
	stampBytes = 32        // in which the time that a line begins with fits
	proofBytes = 64        // of the end of what was read, to see that it is the same log
)

// phase is a part of the log in which one phase of diskimage-builder runs.
type phase struct {
	name string
	line int
	at   time.Time // zero where the line does not tell
}

// index is what is known of a log. It grows with the log, and reads every byte once.
type index struct {
	mu         sync.Mutex
	generation int // of the log under this name: one that was cut off is another
	known
}

// known is where the lines of a log are, and what some of them say.
type known struct {
	file  [2]uint64 // device and inode
	read  int64     // bytes
	proof []byte    // the last of them
	start int64     // where the line begins that has no end yet
	line  []byte    // what of it was read, at most maxLine

	lines  int     // with an end
	stride int     // lines from one mark to the next
	marks  []int64 // where line 1, 1+stride, 1+2*stride … begin

	finder  diblog.Finder
	phases  []phase
	errors  []int  // numbers of lines
	wrong   int    // how many there are
	clearly bool   // the first of them says it best
	last    []byte // the begin of the last line that says when it was said
	exit    string // the exit code, once the log tells it
	trapped bool
}

// total is how many lines there are, one without an end included.
func (k *known) total() int {
	if k.read > k.start {
		return k.lines + 1
	}
	return k.lines
}

// advance reads what has been added to a log until a deadline, and reports whether that
// was all. The caller holds the mutex.
func (x *index) advance(file *os.File, deadline time.Time) (whole bool, err error) {
	info, err := file.Stat()
	if err != nil {
		return false, fmt.Errorf("read log: %w", err)
	}
	if !x.same(file, info) {
		x.generation++
		x.known = known{file: inode(info), stride: firstMarks, marks: []int64{0}}
	}
	buffer := make([]byte, chunk)
	for x.read < info.Size() {
		if time.Now().After(deadline) {
			return false, nil
		}
		n, err := file.ReadAt(buffer[:min(int64(chunk), info.Size()-x.read)], x.read)
		x.take(buffer[:n])
		if errors.Is(err, io.EOF) {
			return true, nil // it was cut off just now, which the next look sees
		}
		if err != nil {
			return false, fmt.Errorf("read log: %w", err)
		}
	}
	return true, nil
}

// same reports whether a file is the log that was read so far, and not another that was
// written in its place.
func (k *known) same(file *os.File, info os.FileInfo) bool {
	if k.stride == 0 || k.file != inode(info) || info.Size() < k.read {
		return false
	}
	proof := make([]byte, len(k.proof))
	n, err := file.ReadAt(proof, k.read-int64(len(proof)))
	return (err == nil || errors.Is(err, io.EOF)) && bytes.Equal(proof[:n], k.proof)
}

func inode(info os.FileInfo) [2]uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return [2]uint64{s.Dev, s.Ino}
	}
	return [2]uint64{}
}

// take reads the next bytes.
func (k *known) take(text []byte) {
	k.proof = append(k.proof, text[max(0, len(text)-proofBytes):]...)
	k.proof = k.proof[max(0, len(k.proof)-proofBytes):]
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n')
		part := text
		if end >= 0 {
			part = text[:end]
		}
		k.read += int64(len(part))
		if end < 0 {
			k.line = append(k.line, part[:min(len(part), maxLine-len(k.line))]...)
			return
		}
		line := part[:min(len(part), maxLine)]
		if len(k.line) > 0 {
			k.line = append(k.line, part[:min(len(part), maxLine-len(k.line))]...)
			line = k.line
		}
		k.read++
		k.end(line)
		k.line, k.start, text = k.line[:0], k.read, text[end+1:]
	}
}

// end takes a line that has ended; the next begins behind what was read.
func (k *known) end(line []byte) {
	k.lines++
	if k.lines%k.stride == 0 {
		if len(k.marks) == maxMarks {
			for i := range maxMarks / 2 {
				k.marks[i] = k.marks[2*i]
			}
			k.marks, k.stride = k.marks[:maxMarks/2], 2*k.stride
		}
		if k.lines%k.stride == 0 {
			k.marks = append(k.marks, k.read)
		}
	}
	if len(line) > stampBytes && line[4] == '-' && line[10] == ' ' {
		k.last = append(k.last[:0], line[:stampBytes]...)
	}
	said := k.finder.Add(line)
	switch {
	case said.Phase != "":
		k.enter(said.Phase, line)
	case said.Trap && !k.trapped:
		k.trapped = true
		k.enter("clean up after a failure", line)
	case said.Weight >= 2 && !k.trapped:
		k.note(said.Weight)
	}
	if code, ok := bytes.CutPrefix(line, []byte(diblog.ExitLine)); ok {
		k.exit = string(bytes.TrimSpace(code))
	}
}

// note remembers that the last line tells of an error. What tools say when they can say
// it best is told from what has only a word of that kind in it.
func (k *known) note(weight int) {
	if clear := weight > 2; clear && !k.clearly {
		k.errors, k.wrong, k.clearly = nil, 0, true
	} else if !clear && k.clearly {
		return
	}
	if k.wrong++; len(k.errors) < maxErrors {
		k.errors = append(k.errors, k.lines)
	}
}

// enter remembers that a phase begins in the last line.
func (k *known) enter(name string, line []byte) {
	if n := len(k.phases); n == maxPhases || n > 0 && k.phases[n-1].name == name {
		return
	}
	k.phases = append(k.phases, phase{name, k.lines, saidAt(line)})
}

// saidAt is when a line was said; zero where it does not tell.
func saidAt(line []byte) time.Time {
	at, _ := time.Parse("2006-01-02 15:04:05.999999", diblog.Stamp(line))
	return at
}

// mark is a place at or before the beginning of a line, and the number of the line there.
func (k *known) mark(line int) (offset int64, at int) {
	i := min((line-1)/k.stride, len(k.marks)-1)
	return k.marks[i], 1 + i*k.stride
}

// maxIndexes is how many logs are known at a time.
const maxIndexes = 32

// indexes are those of the logs that were shown last.
type indexes struct {
	mu   sync.Mutex
	all  map[string]*index
	used []string // the one that was shown last is the last
}

// of is the index of a log.
func (c *indexes) of(name string) *index {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, other := range c.used {
		if other == name {
			c.used = append(c.used[:i], c.used[i+1:]...)
			break
		}
	}
	c.used = append(c.used, name)
	if len(c.used) > maxIndexes {
		delete(c.all, c.used[0])
		c.used = c.used[1:]
	}
	if c.all == nil {
		c.all = map[string]*index{}
	}
	if c.all[name] == nil {
		c.all[name] = &index{}
	}
	return c.all[name]
}
