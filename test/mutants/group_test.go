package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Mistake: a run that is killed leaves tests, or what they have started, which go on for ever on a machine that others use.
func TestAGroupEndsWithUs(t *testing.T) {
	t.Parallel()
	held, said, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	us := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestBeginGroup$", "-test.timeout", "1m")
	us.Env, us.Stdout = append(os.Environ(), "MUTANTS_GROUP=1"), said
	err = us.Start()
	_ = said.Close()
	if err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(held)
	if line, err := from.ReadString('\n'); line != "begun\n" {
		t.Fatalf("the group says %q: %v", line, err)
	}
	_ = us.Process.Kill()
	_ = held.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.ReadAll(from); err != nil { // all that hold the other end have ended, or this fails
		t.Errorf("the group lives on: %v", err)
	}
	_ = us.Wait()
}

// TestBeginGroup is the program that TestAGroupEndsWithUs kills: it begins a group of two.
func TestBeginGroup(t *testing.T) {
	if os.Getenv("MUTANTS_GROUP") == "" {
		t.Skip("this is no test by itself")
	}
	cmd := group(t.Context(), "sh", "-c", `sleep 60 & echo begun; wait`)
	cmd.Stdout = os.Stdout
	t.Log(cmd.Run())
}

// Mistake: a busy machine kills mutants. Where tests take too long, they are asked again.
func TestWhatIsSlowIsAskedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tests         string // as a shell knows them
		noticed, slow bool
	}{
		"a mutant never ends":         {`[ $MUTANT = 0 ] || exec sleep 60`, true, true},
		"the machine was busy":        {`[ $MUTANT = 0 ] || [ -e again ] || { touch again; exec sleep 60; }`, false, false},
		"and the mutant is no good":   {`[ $MUTANT = 0 ] || { [ -e again ] && exit 1; touch again; exec sleep 60; }`, true, false},
		"the tests are no good":       {`[ $MUTANT = 0 ] && exit 1; exec sleep 60`, false, false},
		"a mutant is no good at once": {`[ $MUTANT = 1 ] && exit 1`, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &program{dir: t.TempDir(), patience: time.Second}
			p.binary = filepath.Join(p.dir, "tests")
			if err := os.WriteFile(p.binary, []byte("#!/bin/sh\n"+c.tests+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			if noticed, slow := p.fails(t.Context(), 1, []test{{name: "TestIt"}}); noticed != c.noticed || slow != c.slow {
				t.Errorf("noticed %t, slow %t; want %t, %t", noticed, slow, c.noticed, c.slow)
			}
		})
	}
}
