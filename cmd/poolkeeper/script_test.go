package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"poolkeeper": main, "nodepool-builder": main, "nodepool-launcher": main})
}

// The scripts in testdata/script run the program as its users do. Each has a
// tree of its own, below $NODEPOOL_ROOT of the ZooKeeper at
// 127.0.0.1:$NODEPOOL_PORT, and an empty one below $NODEPOOL_OTHER; nobody listens at
// $NODEPOOL_NOBODY, and a program may at $NODEPOOL_FREE. In their configurations these stand as %(NODEPOOL_X). Commands beside the usual ones:
//
//	znode PATH [DATA]   write a znode, parents included; ! checks that there is none
//	oneline             the program's stderr is one line, and no stack trace
//	silent              the program's stderr is empty
//
// Neither counts that a command says it waits for ZooKeeper: the machine may be busy.
func TestScripts(t *testing.T) {
	server := zktest.Shared(t)
	_, port, err := net.SplitHostPort(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	tree, program := treeOf{server: server.Addr()}, programOfScripts(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_GOLDEN") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("NODEPOOL_PORT", port)
			env.Setenv("NODEPOOL_NOBODY", unusedPort(t))
			env.Setenv("NODEPOOL_FREE", strconv.Itoa(zktest.FreePort()))
			env.Setenv("NODEPOOL_ROOT", zktest.Root(t))
			env.Setenv("NODEPOOL_OTHER", zktest.Root(t))
			for _, root := range []string{"NODEPOOL_ROOT", "NODEPOOL_OTHER"} {
				if err := tree.make(env.Getenv(root)); err != nil {
					return err
				}
			}
			env.Setenv("GORACE", "atexit_sleep_ms=0") // each command would wait a second
			env.Setenv("PATH", program+string(os.PathListSeparator)+env.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"znode":   tree.znode,
			"oneline": oneLine,
			"silent":  silent,
		},
	})
}

// programOfScripts is a folder with the program for scripts: daemons are this very one, with the race detector,
// commands are what `make build` makes, which starts with a fourth of the work: scripts give a thousand commands. The race
// detector sees of commands what other tests of this package run in their own process.
func programOfScripts(t *testing.T) string {
	t.Helper()
	us, err := exec.LookPath("poolkeeper") // as testscript.Main makes it
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain", "poolkeeper")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", plain, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	text := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *' builder '* | *' launcher '* | *' dev '*) exec '%s' \"$@\" ;; esac\nexec '%s' \"$@\"\n", us, plain)
	if err := os.WriteFile(filepath.Join(dir, "poolkeeper"), []byte(text), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return dir
}

// unusedPort is a port on which nobody listens, nor will while the test runs: it is ours.
func unusedPort(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	address, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(address.(*syscall.SockaddrInet4).Port)
}

// treeOf writes into the trees of scripts.
type treeOf struct{ server string }

// make makes an empty tree, as the first daemon does.
func (s treeOf) make(root string) error {
	client, err := recipe.Dial(recipe.Config{Servers: []string{s.server}, Chroot: root})
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.Session(context.Background()) // scripts have no context; the server is there
	return err
}

func (s treeOf) znode(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: znode PATH [DATA]")
	}
	client, err := recipe.Dial(recipe.Config{Servers: []string{s.server}, Chroot: ts.Getenv("NODEPOOL_ROOT")})
	ts.Check(err)
	defer client.Close()
	ctx := context.Background() // scripts have none; the server is there
	session, err := client.Session(ctx)
	ts.Check(err)
	stat, found, err := session.Exists(ctx, args[0])
	ts.Check(err)
	switch {
	case neg && found:
		ts.Fatalf("%s is there, version %d", args[0], stat.Version)
	case neg:
		return
	}
	ts.Check(session.EnsurePath(ctx, path.Dir(args[0])))
	data := []byte(strings.Join(args[1:], " "))
	_, err = session.Create(ctx, args[0], data, recipe.Persistent)
	if errors.Is(err, recipe.ErrNodeExists) {
		_, err = session.Set(ctx, args[0], data, recipe.AnyVersion)
	}
	ts.Check(err)
}

// oneLine checks that an error is told as people want it told.
func oneLine(ts *testscript.TestScript, neg bool, _ []string) {
	if neg {
		ts.Fatalf("oneline has no opposite")
	}
	text := withoutWaiting(ts.ReadFile("stderr"))
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != 1 || !strings.HasPrefix(text, "poolkeeper: ") || strings.Contains(text, "goroutine ") {
		ts.Fatalf("want one line of stderr that begins with \"poolkeeper: \", got:\n%s", text)
	}
}

// silent checks that nothing was told.
func silent(ts *testscript.TestScript, neg bool, _ []string) {
	if text := withoutWaiting(ts.ReadFile("stderr")); neg != (text != "") {
		ts.Fatalf("silent: stderr is:\n%s", text)
	}
}

// waiting is what a command says of ZooKeeper while it takes long to answer.
var waiting = regexp.MustCompile(`(?m)^poolkeeper: still trying to reach ZooKeeper, .*\n`)

// withoutWaiting is text of stderr without what only a busy machine makes a command say.
func withoutWaiting(stderr string) string { return waiting.ReplaceAllString(stderr, "") }
