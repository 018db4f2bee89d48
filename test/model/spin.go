package model

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

//go:embed *.pml
var sources embed.FS

// memory is how many megabytes an exploration may take.
const memory = 8000

// Run is one exploration of a model.
type Run struct {
	Model   string   // lease, lock or claim
	Defines []string // NAME or NAME=VALUE
	History string   // what history.h says; "" for none
	Fast    bool     // it is small: what is saved while compiling is worth more
	Trail   bool     // tell the steps that lead to what is wrong
}

// Outcome is what an exploration has found.
type Outcome struct {
	States int
	Wrong  string // what does not hold; "" for nothing
	Trail  string // how that comes about
}

var (
	statesLine = regexp.MustCompile(`(?m)^\s*(\d+) states, stored`)
	wrongLine  = regexp.MustCompile(`(?m)^pan:1: (.*)$`)
	errorsLine = regexp.MustCompile(`errors: (\d+)`)
	stepLine   = regexp.MustCompile(`(?m)^ *\d+:\tproc`)
)

// Explore looks at every state that a model can come to, or until something is wrong.
func Explore(ctx context.Context, r Run) (*Outcome, error) {
	dir, err := os.MkdirTemp("", "poolkeeper-model-")
	if err != nil {
		return nil, fmt.Errorf("explore %s: %w", r.Model, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	source, err := sources.ReadFile(r.Model + ".pml")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "model.pml"), source, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("explore %s: %w", r.Model, err)
	}
	defines := make([]string, 0, len(r.Defines)+1)
	for _, d := range r.Defines {
		defines = append(defines, "-D"+d)
	}
	if r.History != "" {
		if err := os.WriteFile(filepath.Join(dir, "history.h"), []byte(r.History), 0o600); err != nil {
			return nil, fmt.Errorf("explore %s: %w", r.Model, err)
		}
		defines = append(defines, "-DHISTORY")
	}
	optimise := "-O1"
	if r.Fast {
		optimise = "-O0"
	}
	if _, err := run(ctx, dir, "spin", append(defines, "-a", "model.pml")...); err != nil {
		return nil, err
	}
	if _, err := run(ctx, dir, "gcc", "-w", optimise, "-DSAFETY", "-DNOFAIR", fmt.Sprintf("-DMEMLIM=%d", memory), "-o", "pan", "pan.c"); err != nil {
		return nil, err
	}
	limits := []string{"-m100000", "-w22"} // room for what the largest have, in the table of states
	if r.Fast {
		limits = []string{"-m10000", "-w16"}
	}
	if r.History != "" {
		limits = append(limits, "-E") // who cannot do what was recorded has come to no end
	}
	said, err := run(ctx, dir, filepath.Join(dir, "pan"), limits...)
	if err != nil {
		return nil, err
	}
	out, err := outcome(said)
	if err == nil && out.Wrong != "" && r.Trail {
		said, err = run(ctx, dir, "spin", append(defines, "-t", "-p", "model.pml")...)
		out.Trail = steps(said)
	}
	return out, err
}

// outcome reads what an exploration says.
func outcome(said string) (*Outcome, error) {
	count, failed := statesLine.FindStringSubmatch(said), errorsLine.FindStringSubmatch(said)
	if count == nil || failed == nil || strings.Contains(said, "max search depth too small") || strings.Contains(said, "Search not completed") && failed[1] == "0" {
		return nil, fmt.Errorf("explore: not all was seen: %s", said)
	}
	out := &Outcome{}
	out.States, _ = strconv.Atoi(count[1])
	if wrong := wrongLine.FindStringSubmatch(said); wrong != nil {
		out.Wrong = wrong[1]
	} else if failed[1] != "0" {
		out.Wrong = "something is wrong: " + said
	}
	return out, nil
}

// steps are the lines of a trail that tell a step.
func steps(said string) string {
	var list []string
	for line := range strings.Lines(said) {
		if stepLine.MatchString(line) {
			list = append(list, line)
		}
	}
	return strings.Join(list, "")
}

// run runs a program in dir, and returns what it says.
func run(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	said, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, said)
	}
	return string(said), nil
}
