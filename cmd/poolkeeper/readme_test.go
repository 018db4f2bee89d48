package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"poolkeeper/cmd/poolkeeper/manual"
	"poolkeeper/configs"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The configuration that the README shows is one that works.
func TestReadmeConfigurationIsValid(t *testing.T) {
	_, rest, _ := strings.Cut(readme(t), "```yaml\n")
	text, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("no configuration in README.md")
	}
	file := filepath.Join(t.TempDir(), "nodepool.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Load(file, configs.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range cfg.DiskImages {
		for _, element := range image.Elements {
			if _, err := os.Stat(filepath.Join("../../elements", element)); err != nil {
				t.Errorf("image %s: %v", image.Name, err)
			}
		}
	}
}

// Its table of commands has all that there are, and no other.
func TestReadmeNamesEveryCommand(t *testing.T) {
	_, table, _ := strings.Cut(readme(t), "\n## Commands\n")
	table, _, _ = strings.Cut(table, "\n## ")
	told := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)(?:^\\| |, )`([a-z]+[a-z-]*)[^`]*`").FindAllStringSubmatch(table, -1) {
		told[m[1]] = true
	}
	parser, err := kong.New(&cli{}, kong.Vars{"version": ""}, kong.ExplicitGroups(groups))
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range parser.Model.Children {
		if told[command.Name] == command.Hidden {
			t.Errorf("%s: hidden %t, in README.md %t", command.Name, command.Hidden, told[command.Name])
		}
		delete(told, command.Name)
	}
	for name := range told {
		t.Errorf("README.md tells of %s, which is no command", name)
	}
}

// docs/reference/commands.md is made from the definitions of the commands: catches a command or a flag
// that is not told. UPDATE_GOLDEN=1 writes it anew.
func TestReferenceOfCommands(t *testing.T) {
	const page = "../../docs/reference/commands.md"
	parser, err := kong.New(&cli{}, kong.Name("poolkeeper"), kong.Vars{"version": ""}, kong.ExplicitGroups(groups))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := manual.Reference(&text, parser.Model); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(page, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), text.String()); diff != "" {
		t.Errorf("%s is not what the commands say; UPDATE_GOLDEN=1 writes it anew (-page +commands):\n%s", page, diff)
	}
}

// A command line is read alike by the model of the few commands that it can mean and by that of all: catches a command
// that is not found by its name, and help that lacks what the model of all has.
func TestFewCommandsAreReadAsAll(t *testing.T) {
	parser, err := kong.New(&cli{}, kong.Name("poolkeeper"), kong.Vars{"version": ""}, kong.ExplicitGroups(groups))
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range parser.Model.Children {
		for _, name := range append([]string{command.Name}, command.Aliases...) {
			few := meant([]string{"-c", "nodepool.yaml", name, "image"})
			if needsAll := name == "completion" || name == "man"; needsAll != (len(few) == 0) || len(few) > 1 {
				t.Errorf("%s: a model of %d commands", name, len(few))
			}
		}
	}
	for _, line := range []string{
		"list --help", "--help list", "wave --help", "wave show --help", "delete --help", "-c list request-list --help", // what prints, and nothing runs
		"--help", "-c list --help", "--help -c list", "-c list --version", "lits", "lits list", "list --stat ready", "wave shwo", "list list", "image-build", "",
	} {
		args := strings.Fields(line)
		var out, wantOut, complaints strings.Builder
		got, err := parse(args, &out, &complaints)
		want, wantErr := parseAs(&cli{}, args, &wantOut, &complaints)
		if out.String() != wantOut.String() || (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() || got.printed != want.printed {
			t.Errorf("%s: %v, want %v\n%s", line, err, wantErr, cmp.Diff(wantOut.String(), out.String()))
		}
	}
	if got, err := parse([]string{"request-list", "-c", "list", "-o", "name"}, io.Discard, io.Discard); err != nil || got.Command() != "request-list" || got.flags.Config != "list" {
		t.Errorf("a file with the name of a command: %+v, %v", got, err)
	}
}
