package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// helper is what a mutated package has beside its files.
const helper = `package %s

import (
	"os"
	"strconv"
	"sync"
)

var (
	mutantNumber_, _ = strconv.Atoi(os.Getenv("MUTANT"))
	mutantSeen_      = os.Getenv("MUTANT_SEEN")
	mutantOnce_      sync.Map
)

func mutantChosen_(id int) bool {
	if mutantSeen_ != "" {
		if _, told := mutantOnce_.LoadOrStore(id, true); !told {
			if f, err := os.OpenFile(mutantSeen_, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
				_, _ = f.WriteString(strconv.Itoa(id) + "\n")
				_ = f.Close()
			}
		}
	}
	return id == mutantNumber_
}
`

// subject is a target that is broken.
type subject struct {
	target
	sources  []string // its files, from the top of the tree
	pkg      string
	mutated  map[string][]byte // by source
	mutants  []Mutant
	from, to int // which of them are tried
	work     string
	programs []*program

	mu    sync.Mutex
	score score
	wrong []string // reviews that say equivalent, of what a test has noticed
}

// score is what became of mutants.
type score struct {
	tried, killed, slow, unseen, left, equivalent int
}

func (s *score) add(o score) {
	s.tried += o.tried
	s.killed += o.killed
	s.slow += o.slow
	s.unseen += o.unseen
	s.left += o.left
	s.equivalent += o.equivalent
}

// expected is how many of those that were tried a test has noticed, or are known to survive, in percent.
func (s score) expected() float64 { return 100 * float64(s.killed+s.left) / float64(max(s.tried, 1)) }

func (s score) percent() float64 { return 100 * float64(s.killed) / float64(max(s.tried, 1)) }

func (s score) String() string {
	return fmt.Sprintf("%d of %d mutants killed (%.1f %%), %d of them by taking too long; %d without a test that comes there; %d equivalent ones do not count",
		s.killed, s.tried, s.percent(), s.slow, s.unseen, s.equivalent)
}

// mutate writes the mutants into the sources.
func (s *subject) mutate(ctx context.Context) error {
	pkg, files, err := s.list(ctx)
	if err != nil {
		return err
	}
	s.pkg, s.mutated = pkg, map[string][]byte{}
	m := &mutator{}
	for _, name := range files {
		file := filepath.Join(s.dir, name)
		source, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("mutate %s: %w", s.dir, err)
		}
		if s.mutated[file], err = m.mutate(file, source); err != nil {
			return err
		}
		s.sources = append(s.sources, file)
	}
	s.mutants = m.mutants
	return nil
}

// try compiles the tests, has them tell where they come by, and runs them with each mutant.
func (s *subject) try(ctx context.Context, r *round) error {
	if err := s.compile(ctx); err != nil {
		return err
	}
	for _, p := range s.programs {
		if err := p.look(ctx, r.jobs); err != nil {
			return err
		}
	}
	var group errgroup.Group
	group.SetLimit(max(r.jobs, 1))
	for i, m := range s.mutants {
		review := of(r.reviewed, m)
		if i < s.from || i >= s.to || r.over() || ctx.Err() != nil {
			continue
		}
		group.Go(func() error {
			if ctx.Err() == nil {
				s.one(ctx, m, review)
			}
			return nil
		})
	}
	_ = group.Wait() // never an error
	return ctx.Err()
}

// one runs the tests that come by a mutant, until one notices.
func (s *subject) one(ctx context.Context, m Mutant, v *review) {
	seen, noticed, slow := false, false, false
	for _, p := range s.programs {
		if tests := p.by[m.ID]; len(tests) > 0 && !noticed {
			seen = true
			noticed, slow = p.notices(ctx, m.ID, tests)
		}
	}
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v != nil && v.Equivalent != "" {
		s.score.equivalent++
		if noticed && !slow {
			s.wrong = append(s.wrong, fmt.Sprintf("%s:%d: a test notices it, so it is not equivalent: %s", m.File, m.Line, m.Name()))
		}
		return
	}
	if !noticed && !seen && slices.ContainsFunc(s.programs, func(p *program) bool { return p.slow[m.ID] }) {
		fmt.Printf("not tried, as the tests that come there are slow: %s:%d: %s\n", m.File, m.Line, m.Name())
		return
	}
	s.score.tried++
	switch {
	case noticed:
		s.score.killed++
		if slow {
			s.score.slow++
			if os.Getenv("MUTANTS_VERBOSE") != "" {
				fmt.Printf("takes too long: %s:%d: %s\n", m.File, m.Line, m.Name())
			}
		}
		if v != nil && !slow { // a busy machine notices everything
			s.wrong = append(s.wrong, fmt.Sprintf("%s:%d: a test notices it now: %s", m.File, m.Line, m.Name()))
		}
		return
	case !seen:
		s.score.unseen++
	}
	fmt.Printf("survives: %s:%d: %s", m.File, m.Line, m.Name())
	switch {
	case v != nil:
		s.score.left++
		fmt.Printf(" [%s]", v.Left)
	case !seen:
		fmt.Print(" [no test comes there]")
	}
	fmt.Println()
}

// tell prints the score.
func (s *subject) tell() {
	for _, p := range s.programs {
		p.tell()
	}
	fmt.Printf("%s: %s\n", s.dir, s.score)
	if left := s.to - s.from - s.score.tried - s.score.equivalent; left > 0 {
		fmt.Printf("%s: no time for %d more\n", s.dir, left)
	}
}

// compile makes the test programs with all mutants in them.
func (s *subject) compile(ctx context.Context) error {
	top, err := os.Getwd()
	if err == nil {
		err = os.MkdirAll(s.work, 0o700)
	}
	if err != nil {
		return fmt.Errorf("mutate %s: %w", s.dir, err)
	}
	replace := map[string]string{}
	put := func(file string, data []byte) error {
		at := filepath.Join(s.work, filepath.Base(file))
		replace[filepath.Join(top, file)] = at
		return os.WriteFile(at, data, 0o600)
	}
	err = put(filepath.Join(s.dir, "zz_mutants.go"), fmt.Appendf(nil, helper, s.pkg))
	for file, data := range s.mutated {
		if err == nil {
			err = put(file, data)
		}
	}
	overlay := filepath.Join(s.work, "overlay.json")
	if err == nil {
		var data []byte
		if data, err = json.Marshal(map[string]any{"Replace": replace}); err == nil {
			err = os.WriteFile(overlay, data, 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("mutate %s: %w", s.dir, err)
	}
	for i, tester := range s.testers {
		dir, only, some := strings.Cut(tester, ":")
		p := &program{dir: dir, binary: filepath.Join(s.work, fmt.Sprintf("test%d", i)), work: s.work, by: map[int][]test{}, slow: map[int]bool{}, patience: patience}
		if some {
			p.only = regexp.MustCompile(only)
		}
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", p.binary, "./"+dir)
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("compile the tests of %s with the mutants of %s: %w: %s", dir, s.dir, err, said)
		}
		s.programs = append(s.programs, p)
	}
	return nil
}

// numbers reads the numbers in a file, one a line.
func numbers(file string) (list []int) {
	data, _ := os.ReadFile(file)
	for line := range strings.FieldsSeq(string(data)) {
		if n, err := strconv.Atoi(line); err == nil {
			list = append(list, n)
		}
	}
	return list
}
