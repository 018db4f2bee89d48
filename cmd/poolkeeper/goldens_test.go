package main

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"poolkeeper/test/zktest"
)

// argumentsOf are what commands cannot do without, of things that are not there. A new command is added here; one
// that names nothing has "".
var argumentsOf = map[string]string{
	"list": "", "request-list": "", "image-list": "", "dib-image-list": "", "image-status": "", "wave list": "", "daemon list": "", "status": "",
	"config history": "", "config who": "", "events": "", "ltime": "", "alien-image-list": "absent", "info": "absent", "explain": "absent",
	"image-build": "absent", "image-delete": "--image absent --build-id 0000000001 --provider absent --upload-id 0000000001", "dib-image-delete": "absent-0000000001",
	"image-pause": "absent", "image-unpause": "absent", "image-rollback": "absent", "image-reject": "absent-0000000001", "image-promote": "absent-0000000001",
	"image-build-cancel": "absent", "build-log": "absent-0000000001",
	"wave create": "--match absent", "wave show": "absent", "wave hold": "absent", "wave release": "absent", "wave priority": "absent high",
	"wave cancel": "absent", "wave retry": "absent", "wave delete": "absent",
	"request": "small --provider absent", "request-delete": "absent", "request-explain": "absent", "hold": "0000000001", "node-delete": "0000000001", "node-explain": "0000000001",
	"ssh": "0000000001", "provider-pause": "absent", "provider-drain": "absent", "provider-resume": "absent", "erase": "absent",
	"daemon who": "absent", "daemon reload": "absent", "daemon log-level": "debug absent", "daemon pause": "absent", "daemon resume": "absent", "daemon drain": "absent",
	"daemon stop": "absent", "daemon dump": "absent",
	"config push": "absent.yaml --key absent.key", "config diff": "1 2", "config pull": "1", "config rollback": "1 --key absent.key", "config keygen": "nodepool.yaml",
	"config-accept": "absent.yaml", "config-validate": "", "config-show": "absent",
	"export-image-data": "absent/file", "import-image-data": "absent.json", "backup": "absent/file", "restore": "absent.json",
	"secret keygen": "nodepool.yaml", "secret set": "absent.yaml a.b", "secret list": "absent.yaml", "secret rotate": "absent.yaml", "secret reseal": "absent.yaml",
	"elements-install": "nodepool.yaml", "completion": "fish", "man": "nodepool.yaml", "doctor": "--no-clouds", "version": "more", "token create": "a/b --may all",
}

// endless run until they are told to stop, and wait for ZooKeeper.
var endless = []string{"builder", "launcher", "dev", "build-guard"}

// Each command says why it fails, as testdata/failures.golden has it: where a flag is none, where ZooKeeper is not there, and where what
// it names is not. Mistakes: a command that fails without a word, or does as if it had done it; words that change unseen.
// UPDATE_GOLDEN=1 writes the file.
func TestFailuresOfCommands(t *testing.T) {
	file, err := filepath.Abs("testdata/failures.golden") // failures goes elsewhere
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	told := failures(t)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(told), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(have), told); diff != "" {
		t.Errorf("%s (-file +commands); UPDATE_GOLDEN=1 writes it anew:\n%s", file, diff)
	}
}

// failures has all commands fail.
func failures(t *testing.T) string {
	t.Helper()
	host, port, err := net.SplitHostPort(zktest.Shared(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	nobody, root := unusedPort(t), zktest.Root(t)
	if err := (treeOf{server: net.JoinHostPort(host, port)}).make(root); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	for name, where := range map[string]string{"nodepool.yaml": port + ", chroot: " + root, "nobody.yaml": nobody} {
		text := fmt.Sprintf("zookeeper-servers: [{host: 127.0.0.1, port: %s}]\nimages-dir: images\ndiskimages: [{name: debian}]\nlabels: [{name: small}]\n", where)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := slices.Sorted(maps.Keys(commands(t)))
	texts := make([]string, len(all))
	var group errgroup.Group
	group.SetLimit(8)
	for i, name := range all {
		arguments, known := argumentsOf[name]
		if !known && !slices.Contains(endless, name) {
			t.Errorf("%s is a new command: say in goldens_test.go what it cannot do without, of something that is not there; UPDATE_GOLDEN=1 then writes its failures", name)
			continue
		}
		group.Go(func() error {
			if wrong := fails(t, name, "--no-such-flag"); wrong != "$ "+name+" --no-such-flag\n"+unknownFlag {
				t.Errorf("wrong usage is not told as such: %s", wrong)
			}
			if known {
				texts[i] += fails(t, "-c nobody.yaml --zookeeper-wait 200ms "+name, arguments)
			}
			if arguments != "" {
				texts[i] += fails(t, "-c nodepool.yaml --zookeeper-wait 60s "+name, arguments)
			}
			return nil
		})
	}
	_ = group.Wait() // none fails
	return strings.NewReplacer(dir, "DIR", port, "PORT", nobody, "NOBODY", root, "ROOT").Replace(strings.Join(texts, ""))
}

// unknownFlag is what each command says of a flag that is none.
const unknownFlag = `poolkeeper: unknown flag --no-such-flag
Run "poolkeeper --help" for the commands, "poolkeeper COMMAND --help" for one.
exit code 2
`

// often is what differs from one run to the next.
var often = regexp.MustCompile(`(?m)^poolkeeper: still trying .*\n| \(connect .*\)$|file\d{9,}`)

// fails is what a command line says on stderr, and its exit code.
func fails(t *testing.T, line, arguments string) string {
	t.Helper()
	var out, complaints bytes.Buffer
	args := append(strings.Fields(line), strings.Fields(arguments)...)
	code := run(t.Context(), args, &out, &complaints)
	return "$ " + strings.Join(args, " ") + "\n" + often.ReplaceAllString(complaints.String(), "") + "exit code " + strconv.Itoa(code) + "\n"
}

// Each command is typed by a script that looks at what it prints: catches one of which nobody has seen the output.
func TestEveryCommandIsSeen(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	seen := map[string]bool{}
	names := slices.Collect(maps.Keys(commands(t)))
	names = slices.DeleteFunc(names, func(name string) bool { return name == "build-guard" }) // builder/dib runs it
	types := map[string]*regexp.Regexp{}
	for _, name := range names {
		types[name] = regexp.MustCompile(`poolkeeper( -[^ ]+( [^ -][^ ]*)?)* ` + name + `\b`)
	}
	looks := regexp.MustCompile(`^(! )?(stdout|stderr|cmp|exists|silent|grep|exec grep|exec \./until|exec stat|exec cat)\b`)
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		var typed []string
		for line := range strings.Lines(string(text)) {
			switch {
			case looks.MatchString(line):
				for _, name := range typed {
					seen[name] = true
				}
			case strings.Contains(line, "poolkeeper "):
				typed = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !types[name].MatchString(line) })
			}
		}
	}
	for _, name := range names {
		if !seen[name] {
			t.Errorf("%s: no script of testdata/script types it and looks at what it prints", name)
		}
	}
}
