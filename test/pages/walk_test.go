package pages

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"poolkeeper/cmd/poolkeeper/devenv"
)

// requireEnv makes this test fail where it would be skipped.
const requireEnv = "POOLKEEPER_REQUIRE_E2E"

// needMachine skips a test where a walk is not possible.
func needMachine(t *testing.T) {
	t.Helper()
	var err error
	if os.Getenv(rootEnv) == "" {
		err = devenv.CheckTools()
	}
	if os.Geteuid() != 0 {
		err = errors.Join(err, errors.New("not root"))
	} else if oerr := canOverlay(t.Context(), t.TempDir()); oerr != nil {
		err = errors.Join(err, fmt.Errorf("mount an overlay: %w", oerr))
	}
	if _, lerr := os.Stat("/dev/loop-control"); lerr != nil {
		err = errors.Join(err, lerr)
	}
	for _, port := range []string{"2181", "8005", "8006"} { // those of the pages
		l, lerr := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:"+port)
		if lerr == nil {
			lerr = l.Close()
		}
		err = errors.Join(err, lerr)
	}
	switch {
	case err == nil:
	case os.Getenv(requireEnv) != "" || os.Getenv(rootEnv) != "":
		t.Fatalf("the walk is wanted, and this machine lacks something: %v", err)
	default:
		t.Skipf("this machine lacks something: %v", err)
	}
}

// commandsOf are the lines of a page that are walked.
func commandsOf(t *testing.T, page string) []Command {
	t.Helper()
	var commands []Command
	for _, b := range allBlocks(t) {
		for _, c := range b.Commands() {
			for _, beginning := range walked[page] {
				if c.Page == page && strings.HasPrefix(c.Bare(), beginning) {
					commands = append(commands, c)
					break
				}
			}
		}
	}
	return commands
}

// firstSteps are the lines of README.md, in its order.
func firstSteps(t *testing.T) Walk {
	t.Helper()
	var config string
	for _, b := range allBlocks(t) {
		if b.Page == "README.md" && b.Lang == "yaml" {
			config = b.Text
		}
	}
	bare := os.Getenv(rootEnv) != ""
	w := Walk{
		Files: map[string]string{"nodepool.yaml": config, "secure.yaml": "{}\n"},
		Answers: map[string]string{
			"poolkeeper -c nodepool.yaml config-validate":  `nodepool\.yaml: ok: 1 images, 1 providers, 1 labels`,
			"poolkeeper -c nodepool.yaml request":          `^0000000000 +tiny +zuul@127\.0\.0\.1 +port [0-9]+$`,
			"poolkeeper -c nodepool.yaml ssh":              `^Linux `,
			"bin/poolkeeper -c .poolkeeper/nodepool.yaml":  `tiny`,
			"poolkeeper -c configs/poolkeeper.yaml config": `ok: 1 images`,
			"poolkeeper -c configs/poolkeeper.yaml req":    `^[0-9]{10} +tiny +zuul@127\.0\.0\.1 `,
			"make demo": `Everything that was started has ended`,
		},
	}
	for _, c := range commandsOf(t, "README.md") {
		if bare || !isDemo(c) { // on this machine the demo is run by itself
			w.Commands = append(w.Commands, c)
		}
	}
	return w
}

// allSteps are firstSteps and then the lines of docs/install.md and those that an annotated
// sample wants, in the order of a person who tries one after the other.
func allSteps(t *testing.T) Walk {
	t.Helper()
	w := firstSteps(t)
	for _, line := range []string{
		"scripts/zookeeper start ~/zookeeper-of-sample", "poolkeeper -c configs/poolkeeper.yaml config-validate",
		"poolkeeper -c configs/poolkeeper.yaml builder", "poolkeeper -c configs/poolkeeper.yaml launcher",
		"poolkeeper -c configs/poolkeeper.yaml request tiny --hold", "scripts/zookeeper stop ~/zookeeper-of-sample",
	} {
		w.Commands = append(w.Commands, Command{Page: "configs/poolkeeper.yaml", Text: line})
	}
	w.Commands = append(w.Commands, commandsOf(t, "docs/install.md")...)
	w.Commands = append(w.Commands, unit(t)...)
	return w
}

func isDemo(c Command) bool { return c.Bare() == "make demo" }

// unit is what systemd does with the units, which a root without systemd cannot: it
// reads their variables and runs what they start, without HOME; the launcher as root, as
// with the drop-in for the local provider.
func unit(t *testing.T) []Command {
	t.Helper()
	commands := []Command{{Text: "scripts/zookeeper start ~/zookeeper-of-unit"}}
	for _, name := range []string{"builder", "launcher"} {
		page := "docs/systemd/poolkeeper-" + name + ".service"
		text, err := os.ReadFile(filepath.Join(top, page)) //nolint:gosec // ours
		if err != nil {
			t.Fatal(err)
		}
		line := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(string(text))
		if line == nil {
			t.Fatalf("%s starts nothing", page)
		}
		commands = append(commands, Command{
			Page: page, Root: true,
			Text: `env -u HOME bash -c 'POOLKEEPER_FLAGS=$(sed -n s/^POOLKEEPER_FLAGS=//p /etc/default/poolkeeper); exec ` + line[1] + `'`,
		})
	}
	return append(commands, Command{Text: "scripts/zookeeper stop ~/zookeeper-of-unit"})
}

// What README.md, docs/install.md and the first sample show is run as it stands, until a
// node answers: by a user with sudo and, where CI wants it, README.md by root as well. In a
// root of its own (POOLKEEPER_ROOT, as docs/hosts.md has it) both do everything.
func TestWalk(t *testing.T) {
	t.Parallel()
	needMachine(t)
	t.Run("visitor", func(t *testing.T) { inRoot(t, allSteps(t), "visitor") })
	switch { // minutes more
	case os.Getenv(rootEnv) != "":
		t.Run("root", func(t *testing.T) { inRoot(t, allSteps(t), "root") })
	case os.Getenv(requireEnv) != "":
		t.Run("root", func(t *testing.T) { inRoot(t, firstSteps(t), "root") })
	}
}
