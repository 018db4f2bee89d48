package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"poolkeeper/builder/waves"
	"poolkeeper/configs"
	shown "poolkeeper/test/pages"
	"poolkeeper/test/zktest"
	"poolkeeper/web"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/action"
	"poolkeeper/zkmodel/recipe"
)

// actionSite is rollbackSite with nodes and a request.
func actionSite(t *testing.T) (config string, session *recipe.Session) {
	t.Helper()
	config, store := rollbackSite(t)
	session = store.Session()
	for at, data := range map[string]string{
		zkmodel.NodePath("0000000001"):           `{"state": "ready", "provider": "north", "state_time": 1, "type": ["small"]}`,
		zkmodel.NodePath("0000000002"):           `{"state": "ready", "provider": "south", "state_time": 1, "type": ["small"]}`,
		zkmodel.RequestPath("100-0000000001"):    `{"state": "requested", "requestor": "zuul", "node_types": ["small"], "state_time": 1}`,
		"/nodepool/requests-lock/100-0000000001": `{}`,
	} {
		err := session.EnsurePath(t.Context(), path.Dir(at))
		if err == nil {
			_, err = session.Create(t.Context(), at, []byte(data), recipe.Persistent)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return config, session
}

// What differs from run to run: who, when, which file, and the ids of transactions.
var (
	whoRuns  = regexp.MustCompile(`poolkeeper:[\w.@-]+`)
	whenRuns = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z|\b\d{10}\.\d+\b|\b\d{1,9}\b(\.\d+)?|\b\d{11,}(\.\d+)?\b|/tmp/\S+nodepool\.yaml|[0-9a-f]{31,32}`)
)

var listed = regexp.MustCompile(`(?m)^[+|].*\n`)

func steady(text string) string {
	return whenRuns.ReplaceAllString(whoRuns.ReplaceAllString(text, "WHO"), "N")
}

// wholeTree is all that a tree has, a line a znode.
func wholeTree(t *testing.T, s *recipe.Session) (lines []string) {
	t.Helper()
	var walk func(at string)
	walk = func(at string) {
		data, _, err := s.Get(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, at+" "+steady(string(data)))
		names, err := s.Children(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		for _, name := range names {
			walk(path.Join(at, name))
		}
	}
	walk("/")
	return lines
}

// Each action of the page leaves the tree as its command does, and says the same. Mistakes: a page that does something
// else than the command of that name; one that says less; an action that nobody has compared.
func TestActionsDoAsTheirCommands(t *testing.T) {
	typed, byCommand := actionSite(t)
	paged, byPage := actionSite(t)
	const token = "a token of this test"
	send := serveActions(t, paged, token)
	compared := map[string]bool{}
	for _, tc := range []struct{ line, form string }{
		{"image-build debian-12", "image=debian-12"},
		{"image-build-cancel debian-12", "image=debian-12"},
		{"image-build-cancel debian-12", "image=debian-12"},
		{"image-build nowhere", "image=nowhere"},
		{"image-pause fedora --for 2h --reason new", "image=fedora&for=2h&reason=new"},
		{"image-pause debian-12", "image=debian-12"},
		{"image-unpause fedora", "image=fedora"},
		{"image-pause fedoro", "image=fedoro"},
		{"image-rollback debian-12 --pin --reason bad", "image=debian-12&pin=yes&reason=bad"},
		{"image-promote debian-12-0000000003", "build=debian-12-0000000003"},
		{"image-rollback --release debian-12", "image=debian-12&release=yes"},
		{"image-rollback --release debian-12", "image=debian-12&release=yes"},
		{"image-reject fedora-0000000003 --provider north --reason old", "build=fedora-0000000003&in=north&reason=old"},
		{"dib-image-delete fedora-0000000002", "build=fedora-0000000002"},
		{"dib-image-delete fedora-0000000007", "build=fedora-0000000007"},
		{"image-delete --provider north --image debian-12 --build-id 0000000001 --upload-id 0000000001", "build=debian-12-0000000001&provider=north&upload=0000000001"},
		{"hold 0000000001 --for 2h --reason look", "node=0000000001&for=2h&reason=look"},
		{"node-delete 0000000002", "node=0000000002"},
		{"node-delete 0000000009", "node=0000000009"},
		{"request-delete 100-0000000001", "request=100-0000000001"},
		{"provider-pause north --for 1h --reason cloud", "provider=north&for=1h&reason=cloud"},
		{"provider-resume north", "provider=north"},
		{"provider-resume north", "provider=north"},
		{"provider-pause west", "provider=west"},
		{"provider-drain south", "provider=south"},
	} {
		name, _, _ := strings.Cut(tc.line, " ")
		compared[name] = true
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"-c", typed}, wordsOfLine(t, tc.line)...), &stdout, &stderr)
		status, body := send(name, tc.form+"&sure=yes")
		if (code == 0) != (status == http.StatusOK) {
			t.Errorf("%s: exit %d, and status %d: %s%s", tc.line, code, status, stderr.String(), body)
		}
		// The listing behind some is Nodepool's; a page shows the node instead.
		said := listed.ReplaceAllString(stdout.String(), "") + strings.ReplaceAll(stderr.String(), "poolkeeper: ", "")
		if diff := cmp.Diff(steady(said), steady(body)); diff != "" {
			t.Errorf("%s: the command says (-), the page (+):\n%s", tc.line, diff)
		}
		if diff := cmp.Diff(wholeTree(t, byCommand), wholeTree(t, byPage)); diff != "" {
			t.Fatalf("%s: the tree by the command (-), by the page (+):\n%s", tc.line, diff)
		}
	}
	for _, a := range action.All() {
		if !compared[a.Name] {
			t.Errorf("nobody compares %s", a.Name)
		}
	}
	image, err := zkmodel.NewStore(byPage, nil).Image(t.Context(), "fedora")
	if err != nil || len(image.Verdicts.List) != 1 || image.Verdicts.List[0].By != "poolkeeper:ann" {
		t.Errorf("who rejected it: %+v %v", image.Verdicts, err)
	}
}

// serveActions starts a server that does what ann sends; it returns the status and what is said.
func serveActions(t *testing.T, config, token string) (send func(name, form string) (int, string)) {
	t.Helper()
	cfg, err := configs.Load(config, configs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.WebApp.Tokens = []configs.WebToken{{Name: "ann", Hash: configs.TokenHash(token), May: configs.MayDestroy}}
	client, err := recipe.Dial(recipe.Config{Servers: cfg.ZooKeeper.Servers, Chroot: cfg.ZooKeeper.Chroot})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	now := func() *configs.Config { return cfg }
	server, err := web.New(t.Context(), web.Options{
		Addr: "127.0.0.1:0", Daemon: "launcher", Config: now,
		Operator: &action.Site{Client: client, Config: now, Job: waves.Job, Logger: hclog.NewNullLogger()},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { _ = server.Run(ctx) })
	t.Cleanup(func() { stop(); group.Wait(); http.DefaultClient.CloseIdleConnections() })
	return func(name, form string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+server.Addr()+"/act/"+name, strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.Body.Close() }()
		body, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(body)
	}
}

// The configuration and the lines of docs/page.md as they stand there, with a launcher that takes up a token as it
// runs, and forgets it. Mistakes: a page whose lines do nothing; a token that works on without its entry; an action of
// which no event tells who; a znode more for what a person does where events are not configured.
func TestActionsPage(t *testing.T) {
	blocks, err := shown.Read("../../docs/page.md")
	if err != nil {
		t.Fatal(err)
	}
	var yaml string
	var lines []string
	for _, b := range blocks {
		if b.Lang == "yaml" {
			yaml += b.Text
		}
		for _, c := range b.Commands() {
			lines = append(lines, c.Bare())
		}
	}
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "poolkeeper token create ann") {
		t.Fatalf("the page shows the lines %q", lines)
	}
	file, session := eventSite(t, "events: {keep: 1000}\nimages-dir: "+t.TempDir()+"\n")
	plain, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var made, complaints bytes.Buffer
	if code := run(t.Context(), wordsOfLine(t, strings.TrimPrefix(lines[0], "poolkeeper ")), &made, &complaints); code != 0 {
		t.Fatalf("exit %d: %s", code, &complaints)
	}
	token := regexp.MustCompile(`pkt_\S+`).FindString(made.String())
	entry := regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	withToken := string(plain) + entry.ReplaceAllString(yaml, entry.FindString(made.String()))
	if err := os.WriteFile(file, []byte(withToken), 0o600); err != nil {
		t.Fatal(err)
	}
	address := free(t)
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	var log logged
	group.Go(func() {
		var out logged
		if code := run(ctx, []string{"-c", file, "launcher", "--web", address}, &out, &log); code != exitDone {
			t.Errorf("exit code %d: %s", code, log.String())
		}
	})
	defer http.DefaultClient.CloseIdleConnections()
	shell := func(line string) string {
		line = strings.NewReplacer("http://HOST:8005", "http://"+address, "curl ", "curl -s -w '%{http_code}' ").Replace(line)
		command := exec.CommandContext(t.Context(), "/bin/sh", "-c", line)
		command.Env = append(os.Environ(), "TOKEN="+token)
		said, err := command.CombinedOutput()
		if exit := (&exec.ExitError{}); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(said)
	}
	var said string
	zktest.Eventually(t, func() bool { said = shell(lines[1]); return strings.HasSuffix(said, "200") }, "the launcher does %s", lines[1])
	image, err := zkmodel.NewStore(session, nil).Image(t.Context(), "debian-12")
	if err != nil || !image.Paused || image.PausedBy == nil || image.PausedBy.By != "poolkeeper:ann" || image.PausedBy.Reason != "new kernel" {
		t.Errorf("%s: paused by %+v, %v", said, image.PausedBy, err)
	}
	if said := shell(lines[2]); !strings.HasSuffix(said, "200") {
		t.Errorf("%s: %s", lines[2], said)
	}
	var told, err2 bytes.Buffer
	if code := run(t.Context(), []string{"-c", file, "events", "--match", "operator.*"}, &told, &err2); code != 0 ||
		!regexp.MustCompile(`operator.action +image/debian-12 +action="image-pause" +by="ann" +from="127.*result="done" +said="new kernel" +via="token"`).MatchString(told.String()) {
		t.Errorf("events: exit %d: %s%s", code, &told, &err2)
	}
	if text := log.String(); !regexp.MustCompile(`audit: Action done: action=image-pause client=127.0.0.1:\d+ .*who=ann`).MatchString(text) || strings.Contains(text, token) {
		t.Errorf("the log: %s", text)
	}
	if err := os.WriteFile(file, plain, 0o600); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool { said = shell(lines[1]); return strings.HasSuffix(said, "405") }, "the token is forgotten: %s", url.PathEscape(said))
}
