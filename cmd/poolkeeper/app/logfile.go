package app

import (
	"errors"
	"io"
	"os"
	"sync"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/logging"
)

// DaemonLogger makes the logger of a daemon, as Nodepool's logging file (-l) has it where one is
// given. What of that is not done is logged.
func (a *App) DaemonLogger() hclog.Logger {
	if a.Flags.LogConfig == "" {
		return a.Logger(hclog.Info)
	}
	s := logging.Read(a.Flags.LogConfig)
	level := hclog.LevelFromString(s.Level)
	if level == hclog.NoLevel {
		level = hclog.Info
	}
	out := a.Stderr
	var problem error
	if s.File != "" {
		file := &logFile{path: s.File}
		if problem = file.reopen(); problem == nil {
			out = file
			if s.Stderr {
				out = io.MultiWriter(a.Stderr, file)
			}
		}
	}
	log := a.logger(level, out)
	for _, w := range s.Warnings {
		log.Warn("Logging file", "finding", w)
	}
	if problem != nil {
		log.Warn("Logging file", "finding", problem.Error()+": lines go to stderr")
	}
	return log
}

// logFile is a file that lines are added to; where it has been moved away, one is made anew.
type logFile struct {
	path string
	mu   sync.Mutex
	file *os.File
}

// reopen opens the file.
func (f *logFile) reopen() error {
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err == nil {
		if f.file != nil {
			err = f.file.Close()
		}
		f.file = file
	}
	return err
}

// Write implements io.Writer. While the file cannot be made anew the one that was moved is
// written on.
func (f *logFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, err := os.Stat(f.path)
	if here, known := f.file.Stat(); errors.Is(err, os.ErrNotExist) || err == nil && known == nil && !os.SameFile(at, here) {
		_ = f.reopen() // or the line goes where the last one went
	}
	return f.file.Write(p)
}
