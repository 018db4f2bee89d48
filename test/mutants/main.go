// Command mutants breaks the product on purpose, one small change after the other, and tells which changes no
// test notices.
//
//	mutants [-shard I/N] PACKAGE...
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	shard := flag.String("shard", "1/1", "the I-th of N parts of the mutants")
	flag.Parse()
	var part, parts int
	if n, _ := fmt.Sscanf(*shard, "%d/%d", &part, &parts); n != 2 || part < 1 || part > parts {
		fmt.Fprintln(os.Stderr, "mutants: -shard is I/N")
		os.Exit(2)
	}
	total, killed := 0, 0
	for _, name := range flag.Args() {
		p := &subject{dir: strings.TrimPrefix(name, "./")}
		if err := p.run(ctx, part, parts); err != nil {
			fmt.Fprintln(os.Stderr, "mutants:", err)
			os.Exit(1)
		}
		fmt.Printf("%s: %d of %d mutants killed (%.1f %%), %d without a test that comes there\n",
			p.dir, p.killed, p.tried, 100*float64(p.killed)/float64(max(p.tried, 1)), p.unseen)
		total, killed = total+p.tried, killed+p.killed
	}
	fmt.Printf("all: %d of %d (%.1f %%)\n", killed, total, 100*float64(killed)/float64(max(total, 1)))
}

// subject is a package that is broken.
type subject struct {
	dir, work             string
	programs              []program // its own tests first
	mutants               []Mutant
	tried, killed, unseen int
}

// program is the compiled tests of a package.
type program struct {
	dir, binary string
	args        []string
}

// run breaks a package, and prints what survives.
func (p *subject) run(ctx context.Context, part, parts int) (err error) {
	if p.work, err = os.MkdirTemp("", "poolkeeper-mutants-"); err != nil {
		return fmt.Errorf("mutate %s: %w", p.dir, err)
	}
	defer func() { _ = os.RemoveAll(p.work) }()
	if err := p.compile(ctx); err != nil {
		return err
	}
	seen := filepath.Join(p.work, "seen")
	began := time.Now()
	if ok, said := p.test(ctx, time.Hour, "MUTANT_SEEN="+seen); !ok {
		return fmt.Errorf("the tests of %s fail without a mutant: %s", p.dir, said)
	}
	limit := 10*time.Second + 5*time.Since(began)
	reached := map[int]bool{}
	list, _ := os.ReadFile(seen)
	for id := range strings.FieldsSeq(string(list)) {
		n, _ := strconv.Atoi(id)
		reached[n] = true
	}
	for i, m := range p.mutants {
		if i%parts != part-1 || ctx.Err() != nil {
			continue
		}
		p.tried++
		if !reached[m.ID] {
			p.unseen++
			fmt.Printf("survives: %s:%d: %s: no test comes there\n", m.File, m.Line, m.Operator)
			continue
		}
		if ok, _ := p.test(ctx, limit, "MUTANT="+strconv.Itoa(m.ID)); ok {
			fmt.Printf("survives: %s:%d: %s\n", m.File, m.Line, m.Operator)
			continue
		}
		p.killed++
	}
	return ctx.Err()
}

// compile makes the test program of the package with all of its mutants.
func (p *subject) compile(ctx context.Context) error {
	top, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("mutate %s: %w", p.dir, err)
	}
	files, err := exec.CommandContext(ctx, "go", "list", "-f", `{{.Name}}{{range .GoFiles}} {{.}}{{end}}`, "./"+p.dir).Output()
	if err != nil {
		return fmt.Errorf("list %s: %w", p.dir, err)
	}
	words := strings.Fields(string(files))
	replace := map[string]string{filepath.Join(top, p.dir, "zz_mutants.go"): filepath.Join(p.work, "zz_mutants.go")}
	if err := os.WriteFile(filepath.Join(p.work, "zz_mutants.go"), fmt.Appendf(nil, helper, words[0]), 0o600); err != nil {
		return fmt.Errorf("mutate %s: %w", p.dir, err)
	}
	m := &mutator{}
	for _, name := range words[1:] {
		source, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil {
			return fmt.Errorf("mutate %s: %w", p.dir, err)
		}
		mutated, err := m.mutate(filepath.Join(p.dir, name), source)
		if err == nil {
			err = os.WriteFile(filepath.Join(p.work, name), mutated, 0o600)
		}
		if err != nil {
			return fmt.Errorf("mutate %s: %w", p.dir, err)
		}
		replace[filepath.Join(top, p.dir, name)] = filepath.Join(p.work, name)
	}
	p.mutants = m.mutants
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(filepath.Join(p.work, "overlay.json"), overlay, 0o600)
	}
	if err != nil {
		return fmt.Errorf("mutate %s: %w", p.dir, err)
	}
	testers, err := testersOf(ctx, p.dir)
	if err != nil {
		return err
	}
	for i, dir := range testers {
		t := program{dir, filepath.Join(p.work, fmt.Sprintf("test%d", i)), []string{"-test.short", "-test.failfast"}}
		if deps, err := exec.CommandContext(ctx, "go", "list", "-test", "-deps", "./"+dir).Output(); err == nil && strings.Contains(string(deps), "pgregory.net/rapid\n") {
			t.args = append(t.args, "-rapid.nofailfile") // which it leaves in the tree
		}
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", filepath.Join(p.work, "overlay.json"), "-o", t.binary, "./"+dir)
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("compile the tests of %s with the mutants of %s: %w: %s", dir, p.dir, err, said)
		}
		p.programs = append(p.programs, t)
	}
	return nil
}

// testersOf are the packages whose tests may notice a mutant of one, itself first. Packages whose tests
// start a ZooKeeper are none of them (scripts/units).
func testersOf(ctx context.Context, dir string) ([]string, error) {
	units, err := exec.CommandContext(ctx, "scripts/units").Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	args := append([]string{"list", "-test", "-f", `{{if eq .Name "main"}}{{.ImportPath}}{{range .Deps}} {{.}}{{end}}{{end}}`}, strings.Fields(string(units))...)
	list, err := exec.CommandContext(ctx, "go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var testers []string
	for line := range strings.Lines(string(list)) {
		words := strings.Fields(line)
		if len(words) == 0 || !slices.Contains(words, "poolkeeper/"+dir) {
			continue
		}
		tester := strings.TrimPrefix(strings.TrimSuffix(words[0], ".test"), "poolkeeper/")
		switch {
		case tester == dir:
			testers = slices.Insert(testers, 0, tester)
		case strings.HasPrefix(tester, path.Dir(dir)): // others come there by the way only
			testers = append(testers, tester)
		}
	}
	if len(testers) == 0 {
		return nil, fmt.Errorf("the tests of %s need real parts: it has no mutants", dir)
	}
	return testers, nil
}

// test runs the tests, and reports whether all of them pass in time.
func (p *subject) test(ctx context.Context, limit time.Duration, env string) (passed bool, said string) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, t := range p.programs {
		cmd := exec.CommandContext(ctx, t.binary, t.args...)
		cmd.Dir, cmd.Env = t.dir, append(os.Environ(), env)
		if out, err := cmd.CombinedOutput(); err != nil {
			return false, fmt.Sprintf("%v: %s", err, out)
		}
	}
	return true, ""
}
