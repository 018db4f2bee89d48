package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/configs/sealed"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/event/dispatch"
	"poolkeeper/zkmodel/recipe"
)

// eventsPage are the configurations and the command lines of the page.
func eventsPage(t *testing.T) (yaml []string, lines []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(string(page), "```") {
		lang, text, _ := strings.Cut(block, "\n")
		switch {
		case i%2 == 0:
		case lang == "yaml":
			yaml = append(yaml, text)
		case lang == "console":
			for line := range strings.Lines(text) {
				if command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ poolkeeper "); ok {
					lines = append(lines, command)
				}
			}
		}
	}
	return yaml, lines
}

// wordsOfLine splits a line of a page as a shell does.
func wordsOfLine(t *testing.T, line string) []string {
	t.Helper()
	words, err := configs.SplitWords(line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return words
}

// eventSite writes a configuration for a tree of the test's own.
func eventSite(t *testing.T, events string) (file string, session *recipe.Session) {
	t.Helper()
	root := zktest.Root(t)
	host, port, _ := strings.Cut(zktest.Shared(t).Addr(), ":")
	file = filepath.Join(t.TempDir(), "nodepool.yaml")
	text := fmt.Sprintf("zookeeper-servers: [{host: %s, port: %s, chroot: %s}]\ndiskimages: [{name: debian-12}]\n%s", host, port, root, events)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if session, err = client.Session(t.Context()); err != nil { // which makes the root
		t.Fatal(err)
	}
	return file, session
}

// Mistakes: a page whose configuration or commands do not work as they stand there;
// events that name nobody; --match and --since that pass over too much.
func TestEventsPage(t *testing.T) {
	yaml, lines := eventsPage(t)
	if len(yaml) != 3 || len(lines) != 8 {
		t.Fatalf("the page shows %d configurations and %d commands, which this test does not expect", len(yaml), len(lines))
	}
	lines = lines[:6] // TestSinksOfThePage has the others
	file, _ := eventSite(t, yaml[0])
	printed := map[string]string{}
	for _, line := range lines {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var out logged
		var complaints bytes.Buffer
		args := append([]string{"-c", file}, wordsOfLine(t, line)...)
		if strings.Contains(line, "--follow") {
			go func() {
				defer cancel() // as Ctrl-C does
				for ctx.Err() == nil && !strings.Contains(out.String(), "image.unpaused") {
					<-time.After(10 * time.Millisecond)
				}
			}()
		}
		if code := run(ctx, args, &out, &complaints); code != exitDone {
			t.Errorf("%s: exit code %d: %s", line, code, &complaints)
		}
		cancel()
		printed[line] = out.String()
	}
	all := printed["events"]
	if strings.Count(all, "\n") != 2 || !strings.Contains(all, "image.paused  image/debian-12") || !strings.Contains(all, "/poolkeeper/operator/") {
		t.Errorf("events:\n%s", all)
	}
	if got := printed["events --since 12h --match 'image.*'"]; got != all {
		t.Errorf("those of images:\n%s", got)
	}
	if got := printed["events --match '*.failed' --json"]; got != "" {
		t.Errorf("failures:\n%s", got)
	}
}

// Mistakes: events that are not CloudEvents; a wrong question that is answered; a site
// without events that is told nothing of that.
func TestEventsCommand(t *testing.T) {
	file, _ := eventSite(t, "events: {}\n")
	ask := func(file string, args ...string) (int, string, string) {
		var out, complaints bytes.Buffer
		code := run(t.Context(), append([]string{"-c", file}, args...), &out, &complaints)
		return code, out.String(), complaints.String()
	}
	if code, _, complaints := ask(file, "image-pause", "debian-12"); code != exitDone {
		t.Fatal(complaints)
	}
	code, out, _ := ask(file, "events", "--json")
	var e event.Event
	if err := json.Unmarshal([]byte(out), &e); err != nil || code != exitDone || e.SpecVersion != "1.0" || e.Type != event.ImagePaused || !strings.HasSuffix(e.ID, "-1") {
		t.Errorf("exit code %d: %s: %v", code, out, err)
	}
	if _, out, _ = ask(file, "events", "--since", "2100-01-01T00:00:00Z"); out != "" {
		t.Errorf("of the future: %s", out)
	}
	for _, wrong := range [][]string{{"--since", "yesterday"}, {"--match", "[a"}} {
		if code, _, complaints := ask(file, append([]string{"events"}, wrong...)...); code != exitFailed || !strings.Contains(complaints, wrong[1]) {
			t.Errorf("%v: exit code %d: %s", wrong, code, complaints)
		}
	}
	none, session := eventSite(t, "")
	if code, _, complaints := ask(none, "image-pause", "debian-12"); code != exitDone {
		t.Fatal(complaints)
	}
	if code, out, complaints := ask(none, "events"); code != exitDone || out != "" || !strings.Contains(complaints, "has no `events:`") {
		t.Errorf("exit code %d: %s%s", code, out, complaints)
	}
	// Who follows is told at once, and does not wait without a word.
	follows, leave := context.WithCancel(t.Context())
	complaints, end := &logged{}, make(chan int, 1)
	go func() { end <- run(follows, []string{"-c", none, "events", "--follow"}, io.Discard, complaints) }()
	zktest.Eventually(t, func() bool { return strings.Contains(complaints.String(), "has no `events:`") }, "it is said that there are no events")
	leave()
	if code := <-end; code != exitDone {
		t.Errorf("exit code %d: %s", code, complaints)
	}
	// Who has paused the image is there, and nothing of events.
	if names, err := session.Children(t.Context(), "/poolkeeper"); err != nil || !slices.Equal(names, []string{"pauses"}) {
		t.Errorf("without events: /poolkeeper has %q: %v", names, err)
	}
}

// Mistakes: sinks of the page that are not as a daemon wants them, a key that is not used,
// when it is sealed, too, or shows, dead letters that the page's commands do not list or send again.
func TestSinksOfThePage(t *testing.T) {
	yaml, lines := eventsPage(t)
	dir, key := t.TempDir(), "5f1d8e0a9b7c46d2a1e3"
	var refuses atomic.Bool
	var unsigned, taken atomic.Int64
	refuses.Store(true)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Header.Get(dispatch.SignatureHeader) != dispatch.Sign(key, body):
			unsigned.Add(1)
		case refuses.Load():
			w.WriteHeader(http.StatusForbidden)
		default:
			taken.Add(1)
		}
	}))
	defer hook.Close()
	sinks := strings.NewReplacer("https://chat.example.org/hooks/ci", hook.URL, "/var/log/nodepool/", dir+"/", "/usr/local/bin/page", "/bin/false").Replace(yaml[1])
	file, _ := eventSite(t, sinks)
	secure := filepath.Join(dir, "secure.yaml")
	if err := os.WriteFile(secure, []byte(yaml[2]), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Load(file, configs.Options{SecurePath: secure, Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if shown := fmt.Sprintf("%v %#v", cfg.Events.Sinks, cfg.Events.Sinks); strings.Contains(shown, key) || !slices.Contains(cfg.Secrets(), key) {
		t.Errorf("the key is no secret: %s", shown)
	}
	// From here on it is sealed, for commands and the daemon.
	keys, err := sealed.New(filepath.Join(dir, "fleet.key"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := sealed.Seal(keys.Recipients()[0], "events.sinks[chat].key", key)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		keys.File(): string(keys.Bytes()), secure: "secret-key: " + keys.File() + "\n" + strings.Replace(yaml[2], key, hidden, 1),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if cfg, err = configs.Load(file, configs.Options{SecurePath: secure, Strict: true}); err != nil || cfg.Events.Sinks[0].Key != key {
		t.Fatalf("a sealed key: %v", err)
	}
	log := hclog.NewNullLogger()
	client, err := app.Dial(cfg.ZooKeeper, log)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	events := app.NewEvents(client, nil, log, "launcher", "here")
	events.Set(app.EventOptions(cfg))
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { events.Run(ctx) })
	defer group.Wait()
	defer stop()
	ask := func(args ...string) string {
		var out, complaints bytes.Buffer
		if code := run(t.Context(), append([]string{"-c", file, "-s", secure}, args...), &out, &complaints); code != exitDone {
			t.Errorf("%v: exit code %d: %s", args, code, &complaints)
		}
		return out.String()
	}
	ask("image-pause", "debian-12")
	zktest.Eventually(t, func() bool {
		return strings.Contains(ask(wordsOfLine(t, lines[6])...), "chat: the sink refuses it: it answers 403")
	}, "the dead letter is listed")
	refuses.Store(false)
	if out := ask(wordsOfLine(t, lines[7])...); !strings.Contains(out, "is sent to chat again") {
		t.Errorf("replayed: %s", out)
	}
	zktest.Eventually(t, func() bool { return taken.Load() == 1 }, "the dead letter comes")
	zktest.Eventually(t, func() bool {
		data, _ := os.ReadFile(filepath.Join(dir, "events.json"))
		return strings.Contains(string(data), event.ImagePaused)
	}, "the archive has it")
	if unsigned.Load() > 0 || ask("events", "--dead") != "" {
		t.Errorf("%d requests were not signed; dead letters: %s", unsigned.Load(), ask("events", "--dead"))
	}
	var out, complaints bytes.Buffer
	if code := run(t.Context(), []string{"-c", file, "-s", secure, "events", "--replay", "chat"}, &out, &complaints); code != exitFailed || !strings.Contains(complaints.String(), `sink "chat" has no dead letters`) {
		t.Errorf("replay nothing: exit code %d: %s", code, &complaints)
	}
	complaints.Reset() // letters of a sink that is configured no more would be lost
	if code := run(t.Context(), []string{"-c", file, "-s", secure, "events", "--replay", "gone"}, &out, &complaints); code != exitFailed || !strings.Contains(complaints.String(), `has no sink "gone"`) {
		t.Errorf("replay for nobody: exit code %d: %s", code, &complaints)
	}
}

// Mistakes: what a person does with a wave, or with all that is left of a provider, that is
// not told, or not by whom and why, or that is told although nothing has changed.
func TestWavesAndErasuresAreTold(t *testing.T) {
	u := newTool(t, "diskimages: [{name: debian, formats: [raw]}, {name: fedora, formats: [raw]}]\nevents: {}\n")
	u.znode(zkmodel.BuildPath("debian", "0000000001"), `{"state": "ready"}`)
	u.znode(zkmodel.UploadPath("debian", "0000000001", "gone", "0000000001"), `{"state": "ready", "external_id": "img"}`)
	for _, node := range []string{"0000000001", "0000000002"} {
		u.znode(zkmodel.NodePath(node), `{"state": "ready", "provider": "gone", "state_time": 1}`)
	}
	for _, line := range []string{
		"wave create --all --id spring --until built", "wave create --match debian --id autumn --until built",
		"wave hold spring --reason 'no room'", "wave hold spring --reason again", "wave hold spring fedora", "wave release spring", "wave release spring",
		"wave hold --all --reason freeze", "wave release --all",
		"wave priority spring high --reason 'it is urgent'", "wave priority spring low debian", "wave cancel spring debian", "wave cancel spring --reason 'a mistake'", "wave delete spring",
		"erase --force gone",
	} {
		if code, _, stderr := u.run(wordsOfLine(t, line)...); code != exitDone {
			t.Fatalf("%s: %s", line, stderr)
		}
	}
	if code, _, _ := u.run("wave", "delete", "autumn"); code == exitDone {
		t.Error("a wave that is not over is deleted")
	}
	code, out, stderr := u.run("events", "--json")
	if code != exitDone {
		t.Fatal(stderr)
	}
	var got []string
	for line := range strings.Lines(out) {
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Data["by"] == "" || !strings.HasPrefix(e.Source, "/poolkeeper/operator/") {
			t.Errorf("%s: %v", line, err)
		}
		words := []string{strings.TrimPrefix(e.Type, "poolkeeper."), e.Subject}
		for _, key := range []string{"image", "reason", "priority", "uploads", "nodes"} {
			if value, there := e.Data[key]; there {
				words = append(words, fmt.Sprint(value))
			}
		}
		got = append(got, strings.Join(words, " "))
	}
	want := []string{
		"wave.held wave/spring no room", "wave.held wave/spring again", "wave.held wave/spring fedora", "wave.released wave/spring",
		"wave.held waves freeze", "wave.released waves",
		"wave.prioritized wave/spring it is urgent high", "wave.prioritized wave/spring debian low", "wave.cancelled wave/spring debian", "wave.cancelled wave/spring a mistake", "wave.deleted wave/spring",
		"provider.erased provider/gone [upload/debian-0000000001/gone/0000000001] [0000000001 0000000002]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("told:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
