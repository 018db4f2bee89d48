package buildlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// textLine is one line of a log.
type textLine struct {
	number int
	text   []byte
	left   int64 // bytes that are not shown
}

// maxWindow is how many bytes of text one page shows.
const maxWindow = 1 << 20

// window reads some lines of a log, one without an end included. There are fewer where
// they are long.
func (k *known) window(file *os.File, from, count int) ([]textLine, error) {
	from = max(1, from)
	offset, at := k.mark(from)
	in := bufio.NewReaderSize(io.NewSectionReader(file, offset, k.read-offset), 64<<10)
	for ; at < from; at++ {
		if _, err := readLine(in, 0); err != nil {
			return nil, ended(err)
		}
	}
	var list []textLine
	for size := 0; len(list) < count && size < maxWindow; at++ {
		line, err := readLine(in, maxLine)
		if err != nil {
			return list, ended(err)
		}
		line.number = at
		size += len(line.text)
		list = append(list, line)
	}
	return list, nil
}

// ended is the error of reading; the end of the log is none.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("read log: %w", err)
}

// readLine reads a line, and keeps as much of it as is wanted. Errors: io.EOF where no
// line begins.
func readLine(in *bufio.Reader, most int) (textLine, error) {
	var line textLine
	for {
		part, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(part) == 0 && len(line.text) == 0 && line.left == 0 {
			return line, err
		}
		part = bytes.TrimSuffix(part, []byte("\n"))
		kept := part[:min(len(part), most-len(line.text))]
		line.text = append(line.text, kept...)
		line.left += int64(len(part) - len(kept))
		switch {
		case err == nil, errors.Is(err, io.EOF):
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}
