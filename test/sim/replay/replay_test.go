package replay

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"poolkeeper/test/sim/series"
)

// root is the module's, seen from here.
const root = "../../.."

// long skips what compiles the program for WASI, but in make sim.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("SIM") != "long" {
		t.Skip("compiles the whole program once more, with its libraries: make sim does it")
	}
}

// The command runs them: with the race detector it takes minutes to translate programs for WASI. Each world lives a
// tenth of its time: what is not fixed shows as soon as anything draws from it; make sim has all of it.
// Mistakes: something is wrong in a seed that is fixed; something reaches a simulation in wasip1 that nobody has fixed.
func TestSeedsRepeat(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "run", "./test/sim/hunt", "-repeat", "-part", "0.1")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %v", cmd.Args, err)
	}
	t.Logf("%s", out)
}

// Mistakes: of a failure nobody is told how to repeat it, or it is not repeated so, or faults are
// left that it does not need.
func TestFailureIsExplainedLong(t *testing.T) {
	long(t)
	w, env := Worlds[0], []string{"POOLKEEPER_PLANTED=lease"}
	native, err := w.Build(t.Context(), root, t.TempDir(), "planted")
	if err != nil {
		t.Fatal(err)
	}
	h := Hunt{Native: native, Seed: 1, Hours: 100, Jobs: runtime.NumCPU(), Env: env}
	failed, err := h.Go(t.Context())
	if err != nil || failed == nil {
		t.Fatalf("nothing was found: %v", err)
	}
	sealed, err := w.Seal(t.Context(), root, t.TempDir(), "planted")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sealed.Close(t.Context()) }()
	var told strings.Builder
	f := Failure{Native: native, Sealed: sealed, Found: *failed, Jobs: runtime.NumCPU(), Env: env}
	if err := f.Explain(t.Context(), &told); err != nil {
		t.Fatal(err)
	}
	t.Log(told.String())
	repeats(t, sealed, told.String(), env)
}

// repeats holds what was told against what comes of it.
func repeats(t *testing.T, sealed *Sealed, told string, env []string) {
	t.Helper()
	again := regexp.MustCompile(`of (\d+) faults it needs (\d+) .*SEED=(\d+) ORDER=(\d+) ONLY=(\S+)`).FindStringSubmatch(told)
	if again == nil {
		t.Fatal("nobody is told how to repeat it")
	}
	only, err := series.Numbers(again[5])
	if err != nil {
		t.Fatal(err)
	}
	if number(t, again[2]) > 5 {
		t.Errorf("%s of %s faults are left", again[2], again[1])
	}
	var hash string
	for range 3 {
		r, err := sealed.Run(t.Context(), Run{Seed: number(t, again[3]), Order: number(t, again[4]), Only: only, Env: env})
		if err != nil {
			t.Fatal(err)
		}
		last, ok := r.Last()
		if !ok || len(last.Wrongs) == 0 {
			t.Fatal("nothing was wrong when it was repeated")
		}
		if hash == "" {
			hash = last.Hash
		}
		if last.Hash != hash || !strings.HasSuffix(strings.TrimSpace(told), strings.TrimSpace(last.Wrongs[0])) {
			t.Errorf("another timeline was told: %s", last.Wrongs[0])
		}
	}
}

func number(t *testing.T, text string) (n uint64) {
	t.Helper()
	list, err := series.Numbers(text)
	if err != nil || len(list) != 1 {
		t.Fatalf("%q: %v", text, err)
	}
	return uint64(list[0])
}

// Mistakes: what a program prints is read as something else.
func TestResultsAreRead(t *testing.T) {
	out := series.Demanded + `[{"what":"cut","hours":3}]` + "\n" + series.Begun + "4\n" + series.Mark + `{"seed":4,"hours":1.5,"hash":"x","counts":{"cut":2}}` + "\n" + series.Begun + "5\n" +
		"panic: deadlock: main bubble goroutine has exited\n"
	r, err := result([]byte(out), errors.New("exit status 2"))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Demands) != 1 || r.Demands[0] != (series.Demand{What: "cut", Hours: 3}) {
		t.Errorf("demanded is %+v", r.Demands)
	}
	if _, there := r.Last(); there || r.Seed != 5 || len(r.Reports) != 1 || r.Reports[0].Hours != 1.5 {
		t.Errorf("%+v", r)
	}
	if kind := r.Kind(); kind != "panic: deadlock: main bubble goroutine has exited" {
		t.Error(kind)
	}
	wrong := series.Mark + `{"seed":5,"wrongs":["   12.000000s a3.1     WRONG: session 0x12 writes /a/3, held by \"a2\""]}` + "\n"
	r, err = result([]byte(series.Begun+"5\n"+wrong), errors.New("exit status 1"))
	if err != nil {
		t.Fatal(err)
	}
	if kind := r.Kind(); kind != "WRONG: session # writes /a/#, held by #" {
		t.Error(kind)
	}
	if _, err := result([]byte("no such flag\n"), errors.New("exit status 2")); err == nil || !strings.Contains(err.Error(), "no such flag") {
		t.Errorf("a program that simulates nothing: %v", err)
	}
}
