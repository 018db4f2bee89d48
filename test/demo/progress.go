package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"poolkeeper/test/journey"
)

// How often a running step shows its age: on a terminal, in the same line, and
// elsewhere, in a line of its own.
const (
	beatTerminal = 500 * time.Millisecond
	beatLog      = 5 * time.Second
)

// progress tells of steps while they run, and keeps their times.
type progress struct {
	out      io.Writer
	terminal bool
	state    func() string // what a step that runs waits for; may be nil
	times    []timing
}

// timing is how long a step took.
type timing struct {
	step string
	took time.Duration
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out}
	if file, ok := out.(*os.File); ok {
		info, err := file.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}
	return p
}

// step runs one step. A step without a name is part of the one before.
func (p *progress) step(ctx context.Context, name string, run func(context.Context) error) error {
	if name == "" {
		return run(ctx)
	}
	started := time.Now()
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	every := beatLog
	if p.terminal {
		every = beatTerminal
	} else {
		p.line("...", name, 0, "\n")
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			took := time.Since(started)
			p.times = append(p.times, timing{name, took})
			mark := "ok"
			switch {
			case err != nil && errors.Is(ctx.Err(), context.Canceled): // by Ctrl-C
				mark = "ended"
			case err != nil:
				mark = "FAILED"
			}
			p.line(mark, name, took, "\n")
			return err
		case <-tick.C:
			end := "\n"
			if p.terminal {
				end = ""
			}
			p.line("...", name, time.Since(started), end)
		}
	}
}

// line writes the state of a step; on a terminal, over its last one, cut at the edge.
func (p *progress) line(mark, name string, took time.Duration, end string) {
	begin, finish := "", ""
	if p.terminal {
		begin, finish = "\r\x1b[K\x1b[?7l", "\x1b[?7h"
	}
	state := ""
	if mark == "..." && took > 0 && p.state != nil {
		state = strings.TrimRight("  "+p.state(), " ")
	}
	fmt.Fprintf(p.out, "%s%-6s %-45s %7.1f s%s%s%s", begin, mark, name, took.Seconds(), state, finish, end)
}

// tell prints what was seen in the last step.
func (p *progress) tell(text string) error {
	_, err := fmt.Fprintf(p.out, "       %s\n", text)
	return err
}

// show runs a command of the program and prints it with what it printed.
func (p *progress) show(ctx context.Context, j *journey.Journey, command string) error {
	line, output, err := j.CLI(ctx, command)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "\n  $ %s\n  %s\n\n", line, strings.ReplaceAll(strings.TrimSpace(output), "\n", "\n  "))
	return nil
}
