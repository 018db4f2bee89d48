package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"poolkeeper/test/zktest"
)

const (
	// slowest is how long a test may take that is asked about mutants.
	slowest = 6 * time.Second
	// quick are tests that are asked before all others.
	quick = 150 * time.Millisecond
	// patience is how much longer the tests of a mutant may take than twice their time without it.
	patience = 6 * time.Second
	// longest is how long all tests of a mutant may take without it, on a busy machine.
	longest = 5 * time.Minute
)

// program is the compiled tests of a package.
type program struct {
	dir, binary, work string
	only              *regexp.Regexp // nil is all tests
	rapid             bool
	by                map[int][]test // that come by a mutant, by its number
	left              []string       // tests that are not asked, and why
	slow              map[int]bool   // mutants that a slow test comes by
	count             int
	patience          time.Duration
}

type test struct {
	name string
	took time.Duration
}

// command is a run of some tests.
func (p *program) command(ctx context.Context, m *model, args ...string) *exec.Cmd {
	args = append([]string{"-test.short", "-test.failfast"}, args...)
	if p.rapid {
		args = append(args, "-rapid.nofailfile", "-rapid.seed=1") // no file in the tree; the same score each time
	}
	cmd := group(ctx, p.binary, args...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), fmt.Sprintf("%s=%d", zktest.Given, m.port), "GOMAXPROCS=2")
	return cmd
}

// look runs each test alone, without a mutant, to see where it comes by and how long it takes. What
// skips, is slow, or fails is not asked.
func (p *program) look(ctx context.Context, jobs int) error {
	flags, _ := exec.CommandContext(ctx, p.binary, "-h").CombinedOutput()
	p.rapid = strings.Contains(string(flags), "-rapid.nofailfile")
	list, err := exec.CommandContext(ctx, p.binary, "-test.list", ".").Output()
	if err != nil {
		return fmt.Errorf("list the tests of %s: %w", p.dir, err)
	}
	var names []string
	for name := range strings.FieldsSeq(string(list)) {
		if !strings.HasPrefix(name, "Benchmark") && (p.only == nil || p.only.MatchString(name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	results := make([]looked, len(names))
	var group errgroup.Group
	group.SetLimit(max(jobs, 1))
	for i, name := range names {
		group.Go(func() error {
			results[i] = p.alone(ctx, name)
			return nil
		})
	}
	_ = group.Wait() // never an error
	failed := 0
	for i, name := range names {
		r := results[i]
		if strings.HasPrefix(r.why, "fails") {
			failed++
		}
		if r.why == "is slow" { // here, and now: what it would notice is not known
			for _, id := range r.reaches {
				p.slow[id] = true
			}
		}
		if r.why != "" {
			p.left = append(p.left, name+" "+r.why)
			continue
		}
		p.count++
		if os.Getenv("MUTANTS_VERBOSE") != "" {
			fmt.Printf("  %s %s: %s, %d mutants\n", p.dir, name, r.took.Round(time.Millisecond), len(r.reaches))
		}
		for _, id := range r.reaches {
			p.by[id] = append(p.by[id], test{name, r.took})
		}
	}
	if failed > max(1, len(names)/4) {
		return fmt.Errorf("%d of %d tests of %s fail without a mutant: %s", failed, len(names), p.dir, strings.Join(p.left, ", "))
	}
	return ctx.Err()
}

// looked is what one test without a mutant has shown.
type looked struct {
	took    time.Duration
	reaches []int
	why     string // it is not asked
}

func (p *program) alone(ctx context.Context, name string) looked {
	ctx, cancel := context.WithTimeout(ctx, 2*slowest)
	defer cancel()
	m, err := newModel(ctx)
	if err != nil {
		return looked{why: err.Error()}
	}
	defer m.stop()
	seen := filepath.Join(p.work, filepath.Base(p.binary)+"-"+name)
	cmd := p.command(ctx, m, "-test.v", "-test.run", "^"+name+"$")
	cmd.Env = append(cmd.Env, "MUTANT_SEEN="+seen)
	began := time.Now()
	said, err := cmd.CombinedOutput()
	_ = endGroup(cmd)
	r := looked{took: time.Since(began), reaches: numbers(seen)}
	switch {
	case len(r.reaches) == 0 && err == nil:
		r.why = "does not come by"
	case r.took > slowest:
		r.why = "is slow"
	case err != nil:
		r.why = "fails: " + lastLine(said)
	}
	if strings.Contains(string(said), "--- SKIP: "+name+" ") {
		r.why = "is skipped"
	}
	return r
}

// notices runs tests with a mutant, the quick ones first, and reports whether one fails; slow, that they took too long.
func (p *program) notices(ctx context.Context, id int, tests []test) (noticed, slow bool) {
	late := slices.Clone(tests)
	soon := slices.DeleteFunc(slices.Clone(tests), func(t test) bool { return t.took > quick })
	late = slices.DeleteFunc(late, func(t test) bool { return t.took <= quick })
	for _, some := range [][]test{soon, late} {
		if len(some) > 0 && !noticed {
			noticed, slow = p.fails(ctx, id, some)
		}
	}
	return noticed, slow
}

// fails reports whether one of some tests fails with a mutant. Where they take too long, they are run once more without it, to see
// how busy the machine is, and then with it, for twice as long as that has taken.
func (p *program) fails(ctx context.Context, id int, tests []test) (noticed, slow bool) {
	limit := p.patience
	for _, t := range tests {
		limit += 2 * t.took
	}
	if noticed, slow = p.within(ctx, limit, id, tests); !slow {
		return noticed, false
	}
	began := time.Now()
	if failed, _ := p.within(ctx, longest, 0, tests); failed {
		return false, false // they say nothing now
	}
	return p.within(ctx, p.patience+2*time.Since(began), id, tests)
}

// within reports whether one of some tests fails with a mutant, 0 is none, in so long; slow, that they take longer.
func (p *program) within(ctx context.Context, limit time.Duration, id int, tests []test) (noticed, slow bool) {
	var names []string
	for _, t := range tests {
		names = append(names, regexp.QuoteMeta(t.name))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m, err := newModel(ctx)
	if err != nil {
		return false, false
	}
	defer m.stop()
	cmd := p.command(ctx, m, "-test.run", "^("+strings.Join(names, "|")+")$")
	cmd.Env = append(cmd.Env, fmt.Sprintf("MUTANT=%d", id))
	err = cmd.Run()
	_ = endGroup(cmd)
	if cmd.Process == nil {
		return false, false // it was not started, and has noticed nothing
	}
	return err != nil, err != nil && ctx.Err() != nil
}

// tell prints which tests were asked, and which were not.
func (p *program) tell() {
	left := slices.DeleteFunc(slices.Clone(p.left), func(why string) bool {
		return strings.HasSuffix(why, "does not come by") || strings.HasSuffix(why, "is skipped")
	})
	fmt.Printf("  %s: %d tests come by", p.dir, p.count)
	if len(left) > 0 {
		fmt.Printf("; not asked: %s", strings.Join(left, ", "))
	}
	fmt.Println()
}

// lastLine is the last line that says something of why a test failed.
func lastLine(said []byte) string {
	last := ""
	for line := range strings.Lines(string(said)) {
		if line = strings.TrimSpace(line); strings.Contains(line, "_test.go:") || strings.HasPrefix(line, "panic") {
			return line
		} else if line != "" {
			last = line
		}
	}
	return last
}
