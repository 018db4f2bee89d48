package dib

import (
	"io"
	"os"
	"strings"
)

// keptOutput is how much of the end of an output is kept without a log, in bytes.
const keptOutput = 4 << 10

// record is where the output of a command goes.
type record interface {
	io.WriteCloser
	size() int64 // bytes; grows as long as somebody wants to know
	end() string // the end of what was written, where no file has it
}

// openRecord opens a log, or memory if path is "".
func openRecord(path string) (record, error) {
	if path == "" {
		return &memory{}, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, err
	}
	return logFile{f}, nil
}

// logFile keeps all.
type logFile struct{ *os.File }

func (l logFile) size() int64 {
	info, err := l.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

func (logFile) end() string { return "" }

// memory keeps the end.
type memory struct{ text []byte }

// Write implements io.Writer.
func (m *memory) Write(p []byte) (int, error) {
	m.text = append(m.text, p[max(0, len(p)-keptOutput):]...)
	m.text = m.text[max(0, len(m.text)-keptOutput):]
	return len(p), nil
}

// Close implements io.Closer.
func (*memory) Close() error { return nil }

func (*memory) size() int64 { return 0 }

func (m *memory) end() string { return strings.ToValidUTF8(string(m.text), "\uFFFD") }
