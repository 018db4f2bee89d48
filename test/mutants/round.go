package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	enough = 20   // from how many mutants on a score says something
	wanted = 95.0 // percent of a package that tests notice
)

// round is one run: some subjects, and of their mutants a part.
type round struct {
	jobs     int
	at       []string // the only lines whose mutants are tried, as lock.go:12; none are all
	began    time.Time
	limit    time.Duration // 0 is none
	subjects []*subject
	reviewed []*review
	whole    bool // all mutants of the subjects are in it
}

// choose takes the mutants of a part: neighbours, so that few packages have to be compiled.
func (r *round) choose(ctx context.Context, shard string, names []string, now time.Time) error {
	part, parts, err := parseShard(shard, now)
	if err != nil {
		return err
	}
	chosen, err := pick(names)
	if err != nil {
		return err
	}
	if r.reviewed, err = readReviews("test/mutants/reviewed.yaml"); err != nil {
		return err
	}
	all := 0
	for _, t := range chosen {
		s := &subject{target: t}
		if err := s.mutate(ctx); err != nil {
			return err
		}
		for _, m := range s.mutants { // also of those that are not tried now
			of(r.reviewed, m)
		}
		s.mutants = slices.DeleteFunc(s.mutants, func(m Mutant) bool {
			return len(r.at) > 0 && !slices.Contains(r.at, fmt.Sprintf("%s:%d", filepath.Base(m.File), m.Line))
		})
		r.subjects = append(r.subjects, s)
		all += len(s.mutants)
	}
	first, end := all*(part-1)/parts, all*part/parts
	for _, s := range r.subjects {
		s.from, s.to = min(max(first, 0), len(s.mutants)), min(max(end, 0), len(s.mutants))
		first, end = first-len(s.mutants), end-len(s.mutants)
	}
	r.whole = parts == 1
	if !r.whole {
		fmt.Printf("part %d of %d: repeat it with SHARD=%d/%d\n", part, parts, part, parts)
	}
	return nil
}

// parseShard reads I/N, or auto/N, which is another part each hour.
func parseShard(shard string, now time.Time) (part, parts int, err error) {
	if n, _ := fmt.Sscanf(shard, "auto/%d", &parts); n == 1 && parts > 0 {
		hour := int(now.Unix() / 3600) // a run at the same hour of each day has another part, too
		return 1 + (hour+hour/24)%parts, parts, nil
	}
	if n, _ := fmt.Sscanf(shard, "%d/%d", &part, &parts); n != 2 || part < 1 || part > parts {
		return 0, 0, fmt.Errorf("-shard %s is neither I/N nor auto/N", shard)
	}
	return part, parts, nil
}

// lines are those of -at.
func lines(at string) []string {
	return strings.FieldsFunc(at, func(c rune) bool { return c == ',' || c == ' ' })
}

// over reports whether no mutant is to begin any more.
func (r *round) over() bool { return r.limit > 0 && time.Since(r.began) > r.limit }

// run tries the mutants of all subjects.
func (r *round) run(ctx context.Context) error {
	work, err := os.MkdirTemp("", "poolkeeper-mutants-")
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	for i, s := range r.subjects {
		if s.from == s.to || r.over() {
			continue
		}
		s.work = filepath.Join(work, fmt.Sprint(i))
		if err := s.try(ctx, r); err != nil {
			return err
		}
		s.tell()
	}
	return nil
}

// judge tells the score, and fails where it is below the floor. Without a floor it fails where a
// review is wrong, or where of all mutants of a package fewer than wanted are killed; with one it tells
// of a wrong review, as a test that a busy machine fails makes a review look so.
func (r *round) judge(floor float64) error {
	var sum score
	var wrong []string
	in := map[string]bool{}
	for _, s := range r.subjects {
		sum.add(s.score)
		for _, file := range s.sources {
			in[file] = true
		}
		wrong = append(wrong, s.wrong...)
	}
	for _, v := range r.reviewed {
		if in[v.File] && !v.matched {
			wrong = append(wrong, fmt.Sprintf("nothing is changed like this any more, in %s: %s", v.File, v.Mutant))
		}
	}
	fmt.Printf("all: %s; in %s\n", sum, time.Since(r.began).Round(time.Second))
	fmt.Printf("survivors that nobody has reviewed: %d\n", sum.tried-sum.killed-sum.left)
	if len(wrong) > 0 {
		err := errors.New("test/mutants/reviewed.yaml is not right any more:\n" + strings.Join(wrong, "\n"))
		if floor == 0 {
			return err
		}
		fmt.Printf("==> FOUND by mutants, to be mended: %v\n", err)
	}
	if floor > 0 && sum.tried < enough {
		fmt.Printf("==> FOUND by mutants: there was time for %d of them only\n", sum.tried)
	}
	if sum.tried >= enough && sum.expected() < floor {
		return fmt.Errorf("of %d mutants only %.0f %% are killed, or reviewed in test/mutants/reviewed.yaml; at least %.0f %% are to be", sum.tried, sum.expected(), floor)
	}
	if floor > 0 || !r.whole || len(r.at) > 0 || r.limit > 0 {
		return nil
	}
	return r.short()
}

// short is an error where tests notice too few mutants of a package; reviews help nothing but the equivalent ones.
func (r *round) short() error {
	var list []string
	for _, s := range r.subjects {
		if s.score.percent() < wanted {
			list = append(list, fmt.Sprintf("%s (%.1f %%)", s.dir, s.score.percent()))
		}
	}
	if len(list) > 0 {
		return fmt.Errorf("fewer than %.0f %% of the mutants are killed in %s; test what survives, above", wanted, strings.Join(list, ", "))
	}
	return nil
}

// sources lists the files of a package that are built, or those of the target.
func (t target) list(ctx context.Context) (name string, files []string, err error) {
	said, err := exec.CommandContext(ctx, "go", "list", "-f", `{{.Name}}{{range .GoFiles}} {{.}}{{end}}`, "./"+t.dir).Output()
	if err != nil {
		return "", nil, fmt.Errorf("list %s: %w", t.dir, err)
	}
	words := strings.Fields(string(said))
	if len(t.files) > 0 {
		return words[0], t.files, nil
	}
	return words[0], words[1:], nil
}
