package browser_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/hashicorp/go-hclog"

	"poolkeeper/builder/waves"
	"poolkeeper/configs"
	"poolkeeper/test/browser"
	"poolkeeper/test/largesite"
	"poolkeeper/test/zktest"
	"poolkeeper/web"
	"poolkeeper/web/buildlog"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/action"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/overview"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// served is the large site in a ZooKeeper, and a web server that follows it.
type served struct {
	url     string
	site    *largesite.Site
	session *recipe.Session
	log     string // the file of a log that is written
	grew    func()
	stop    func() // ends the server
}

// serve starts a server, which ends with the test.
func serve(t *testing.T) *served {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: zktest.Root(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s := &served{site: largesite.New(largesite.Overview, time.Now())}
	if s.session, err = client.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.site.Store(t.Context(), s.session); err != nil {
		t.Fatal(err)
	}
	cfg, err := s.site.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg.WebApp.Tokens = []configs.WebToken{{Name: "ann", Hash: configs.TokenHash(annsToken), May: configs.MayDestroy}}
	config := func() *configs.Config { return cfg }
	s.log = filepath.Join(t.TempDir(), "log")
	s.append(t, "one\ntw")
	logs := buildlog.NewDir(func(string, string) string { return s.log })
	grew, done := logs.Writing("debian-12", "0000000007")
	s.grew = grew
	t.Cleanup(done)
	m := zkmodel.NewMirror(client, zkmodel.PartImages|zkmodel.PartNodes|zkmodel.PartRequests|zkmodel.PartComponents, nil)
	m.FollowValidations()
	m.FollowCanaries()
	beside := overview.NewFollower(client, hclog.NewNullLogger())
	server, err := web.New(t.Context(), web.Options{
		Addr: "127.0.0.1:0", Daemon: "launcher", Host: "nl01.example.org", Version: "1.4.0", Logs: logs, Config: config,
		Operator: &action.Site{Client: client, Config: config, Job: waves.Job, Logger: hclog.NewNullLogger()},
		Tree: web.Tree{
			Images: m.Images, Nodes: m.Nodes, Requests: m.Requests, Components: m.Components, Validations: m.Validations, ProviderPauses: m.ProviderPauses, Watch: m.Watch,
			WaitSynced: m.WaitSynced, WaitFor: m.WaitFor, Beside: beside.Look, WatchBeside: beside.Watch,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	running := make(chan error, 3)
	go func() { running <- m.Run(ctx) }()
	go func() { beside.Run(ctx); running <- nil }()
	go func() { running <- server.Run(ctx) }()
	s.stop = sync.OnceFunc(func() {
		stop()
		for range 3 {
			if err := <-running; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
	t.Cleanup(s.stop)
	s.url = "http://" + server.Addr()
	return s
}

// append writes to the log.
func (s *served) append(t *testing.T, text string) {
	t.Helper()
	file, err := os.OpenFile(s.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		_, err = file.WriteString(text)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fetch gets a page without the browser.
func (s *served) fetch(t *testing.T, path string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(data)
}

// one is a page of each kind.
var one = []string{
	"/", "/attention", "/images", "/images/rockylinux-9", "/builds/debian-12-0000000007", "/nodes", "/nodes/0000070004", "/requests", "/requests/200-0000000303",
	"/providers", "/providers/vexxhost-ca1", "/daemons", "/daemons/builder/nb02.example.org", "/waves", "/search?q=noble",
}

// The pages of the large site in a real browser. Mistakes: an overview that does not fit on a screen; a table that makes a
// phone scroll sideways; a policy that refuses the page's own script; a link to nothing; a page that mice alone can use.
func TestPages(t *testing.T) {
	b := browser.Open(t)
	s := serve(t)
	b.Size(1280, 900)
	b.Go(s.url + "/")
	if got := browser.Value[int](b, "document.documentElement.scrollHeight"); got > 900 {
		t.Errorf("the overview is %d px high at 1280, want at most 900", got)
	}
	picture(t, b)
	faint(t, b)
	widths(t, b, s)
	follow(t, s)
	keys(t, b, s)
	changes(t, b, s)
	comes(t, b, s)
	ages(t, b, s)
	grows(t, b, s)
	acts(t, b, s)
	if said := b.Complaints(); said != "" {
		t.Errorf("pages complain:\n%s", said)
	}
	ends(t, b, s)
}

// faint sees that Faint finds what has too little contrast. Mistake: a test that finds nothing, whatever there is.
func faint(t *testing.T, b *browser.Browser) {
	t.Helper()
	for name, change := range map[string]string{ // of what no live change makes anew
		"a colour": `e.style.color = "#707070"`, "opacity": `e.style.opacity = "0.4"`, "what is behind": `e.style.backgroundColor = "#767676"`, "a gradient": `e.style.backgroundImage = "linear-gradient(#777, #787878)"`,
	} {
		b.Do(chromedp.Evaluate(`{ const e = document.querySelector(".brand"); `+change+` }`, nil))
		if len(b.Faint()) == 0 {
			t.Errorf("text that %s makes hard to read is not found", name)
		}
		b.Do(chromedp.Evaluate(`document.querySelector(".brand").removeAttribute("style")`, nil))
	}
}

// pictureFile is what README shows.
const pictureFile = "../../docs/picture/overview.png"

// picture makes README's picture where POOLKEEPER_PICTURE is 1, and else holds the one that is there against the
// page. Mistake: a picture of a page that looks otherwise by now.
func picture(t *testing.T, b *browser.Browser) {
	t.Helper()
	const golden = "testdata/picture.golden"
	parts := browser.Value[string](b, `[...document.querySelectorAll("nav a, h1, h2, main th[scope=col], .legend span")].map((e) => e.textContent).join("\n")`)
	if os.Getenv("POOLKEEPER_PICTURE") == "1" {
		var taken []byte
		b.Do(chromedp.CaptureScreenshot(&taken))
		small, err := browser.Small(taken)
		if err == nil {
			err = errors.Join(os.WriteFile(pictureFile, small, 0o644), //nolint:gosec // for all to see
				os.WriteFile(golden, fmt.Appendf(nil, "%x\n%s\n", sha256.Sum256(small), parts), 0o644)) //nolint:gosec // the same
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	shown, err := os.ReadFile(pictureFile)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x\n%s\n", sha256.Sum256(shown), parts); got != string(want) {
		t.Errorf("%s is not of this page: POOLKEEPER_PICTURE=1 makes it anew; the page has\n%s\nwhen it was made it had\n%s", pictureFile, got, want)
	}
}

// widths looks at each page at a desk and on a phone.
func widths(t *testing.T, b *browser.Browser, s *served) {
	t.Helper()
	for _, width := range []int64{1280, 390} {
		b.Size(width, 844)
		for _, path := range one {
			b.Go(s.url + path)
			if got := browser.Value[int64](b, "document.documentElement.scrollWidth"); got > width {
				t.Errorf("%s is %d px wide at %d", path, got, width)
			}
			// A box that scrolls by itself hides what is in it, too.
			wide := browser.Value[[]string](b, `[...document.querySelectorAll(".box")].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.parentElement.id)`)
			if len(wide) > 0 {
				t.Errorf("%s at %d: parts %q are wider than the page", path, width, wide)
			}
			if path == "/" && width == 390 {
				if got := browser.Value[int](b, "document.documentElement.scrollHeight"); got > 5*844 {
					t.Errorf("the overview is %d px high on a phone, want at most 5 screens of 844", got)
				}
			}
			if width > 1000 || path == "/nodes" { // where heads of columns stand before each cell
				for _, faint := range b.Faint() {
					t.Errorf("%s at %d, %s", path, width, faint)
				}
			}
			for what, expression := range map[string]string{
				"one main": "document.querySelectorAll('main').length == 1", "a live region": "!!document.querySelector('[aria-live]')",
				"captions": "[...document.querySelectorAll('table')].every(t => t.caption && t.caption.textContent)", "one heading": "document.querySelectorAll('h1').length == 1",
			} {
				if !browser.Value[bool](b, expression) {
					t.Errorf("%s has not %s", path, what)
				}
			}
		}
	}
}

// follow gets all that pages of this server link to.
func follow(t *testing.T, s *served) {
	t.Helper()
	link := regexp.MustCompile(`(?:href|action)="(/[^"#]*)`)
	seen := map[string]bool{}
	from := one
	for range 2 {
		var next []string
		for _, path := range from {
			if seen[path] {
				continue
			}
			seen[path] = true
			status, body := s.fetch(t, path)
			if status != http.StatusOK {
				t.Errorf("%s: status %d", path, status)
			}
			for _, m := range link.FindAllStringSubmatch(body, -1) {
				next = append(next, strings.ReplaceAll(m[1], "&amp;", "&"))
			}
		}
		from = next
	}
	for _, path := range from {
		if seen[path] {
			continue
		}
		seen[path] = true
		if status, _ := s.fetch(t, path); status != http.StatusOK {
			t.Errorf("%s: status %d", path, status)
		}
	}
	if len(seen) < 200 {
		t.Errorf("%d links only", len(seen))
	}
}

// keys goes around without a mouse.
func keys(t *testing.T, b *browser.Browser, s *served) {
	t.Helper()
	b.Size(1280, 900)
	b.Go(s.url + "/")
	b.Do(chromedp.KeyEvent(kb.Tab))
	if got := browser.Value[string](b, "document.activeElement.className"); got != "skip" {
		t.Errorf("the first stop is %q, want the link to the contents", got)
	}
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Until("document.activeElement.id == 'main'")
	b.Press("/")
	b.Until("document.activeElement.name == 'q'")
	b.Do(chromedp.KeyEvent("0000070004" + kb.Enter))
	b.Until("location.pathname == '/nodes/0000070004' && document.readyState == 'complete'")
	b.Press("g")
	b.Press("i")
	b.Until("location.pathname == '/images' && document.readyState == 'complete'")
	if !browser.Value[bool](b, `document.querySelector("[data-local]").textContent.includes("local")`) {
		t.Error("no local time stands beside UTC")
	}
}

// changes sees what changes in the tree without loading the page, and loses neither what has the focus nor
// what is typed.
func changes(t *testing.T, b *browser.Browser, s *served) {
	t.Helper()
	b.Go(s.url + "/nodes?state=ready")
	b.Until("performance.getEntriesByName(location.origin + '/live').length >= 0 && document.readyState == 'complete'")
	b.Do(chromedp.Evaluate(`document.body.dataset.same = "yes"; document.querySelector("[name=q]").value = "typed"; document.querySelector('a[href="/nodes/0000070004"]').focus()`, nil))
	// A stream that is not open yet is told nothing: the node changes until it is.
	n := 0
	zktest.Eventually(t, func() bool {
		n++
		record := strings.Replace(s.site.Records[zkmodel.NodePath("0000070009")], `"hostname": "np0000070009"`, fmt.Sprintf(`"hostname": "changed-%d"`, n), 1)
		if err := largesite.Put(t.Context(), s.session, zkmodel.NodePath("0000070009"), record); err != nil {
			t.Fatal(err)
		}
		return browser.Value[bool](b, `document.body.textContent.includes("changed-")`)
	}, "the node has changed in the page")
	if !browser.Value[bool](b, `document.body.dataset.same == "yes" && document.querySelector("[name=q]").value == "typed"`) {
		t.Error("the page was loaded as a whole")
	}
	if got := browser.Value[string](b, `document.activeElement.getAttribute("href") || ""`); got != "/nodes/0000070004" {
		t.Errorf("the focus is on %q, want the link that had it", got)
	}
}

// comes sees waves, trials, canaries and versions of the configuration change on a page that is open. Mistake: what the mirror
// does not follow stands there as it was when the page was loaded.
func comes(t *testing.T, b *browser.Browser, s *served) {
	t.Helper()
	b.Go(s.url + "/")
	b.Do(chromedp.Evaluate(`document.body.dataset.same = "yes"`, nil))
	put := func(at, record string) {
		t.Helper()
		if err := largesite.Put(t.Context(), s.session, at, record); err != nil {
			t.Fatal(err)
		}
	}
	status := s.site.Records[wave.Root+"/status/openssl-2026-11"]
	member := fleet.MembersPath + "/builder-nb02.example.org-0000000001"
	verdict := zkmodel.CanaryPath(largesite.Provider(2), largesite.Image(5))
	for n, one := range []struct{ at, record, shows string }{
		{wave.Root + "/status/openssl-2026-11", strings.Replace(status, `"completed":12`, `"completed":17`, 1), "19/25 jobs"},
		{member, strings.Replace(strings.Replace(s.site.Records[member], `"number":7`, `"number":6`, 1), `"before"`, `"old"`, 1), "config 6 of 8"},
		{verdict, "", ""}, // the canary is over
	} {
		if one.record != "" {
			put(one.at, one.record)
			b.Until(fmt.Sprintf(`document.querySelector("main").textContent.includes(%q)`, one.shows))
			continue
		}
		if err := s.session.Delete(t.Context(), one.at, recipe.AnyVersion); err != nil {
			t.Fatal(n, err)
		}
		b.Until(`!document.querySelector("#rollouts").textContent.includes("canary")`)
	}
	if !browser.Value[bool](b, `document.body.dataset.same == "yes"`) {
		t.Error("the page was loaded as a whole")
	}
}

// ages sees how old things are go on, though the page is not loaded again.
func ages(t *testing.T, b *browser.Browser, s *served) {
	t.Helper()
	b.Go(s.url + "/nodes")
	b.Do(chromedp.Evaluate(`{
		const e = document.querySelector("time[data-age]"), now = document.getElementById("now");
		e.dateTime = new Date(Date.parse(now.dateTime) - 3725000).toISOString();
		e.textContent = "3s";
		window.aged = e;
	}`, nil))
	b.Until(`window.aged.isConnected && window.aged.textContent == "1h 2m"`)
}

// grows follows a log whose last line had no end when the page was loaded. Mistake: that line stands there twice.
func grows(t *testing.T, b *browser.Browser, s *served) {
	t.Helper()
	b.Go(s.url + "/build-log/debian-12-0000000007")
	s.append(t, "o\nthree\n")
	s.grew()
	b.Until(`!!document.getElementById("L3")`)
	if got := browser.Value[string](b, `[...document.querySelectorAll(".log code")].map(e => e.textContent).join()`); got != "one,two,three" {
		t.Errorf("the log has the lines %q", got)
	}
}

// ends sees what a page says of a node that is gone, and of a daemon that does not answer. Mistake: what was known
// last stands there as if it were so still.
func ends(t *testing.T, b *browser.Browser, s *served) {
	t.Helper()
	b.Go(s.url + "/nodes/0000070009")
	n := 0
	zktest.Eventually(t, func() bool { // a stream that is not open yet is told nothing
		n++
		if err := largesite.Put(t.Context(), s.session, zkmodel.NodePath("0000070008"), fmt.Sprintf(`{"hostname": "changed-%d"}`, n)); err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			if err := s.session.DeleteTree(t.Context(), zkmodel.NodePath("0000070009")); err != nil {
				t.Fatal(err)
			}
		}
		return browser.Value[bool](b, `document.getElementById("notes").textContent.includes("is gone")`)
	}, "the page says that the node is gone")
	b.Go(s.url + "/nodes")
	s.stop()
	b.Until(`document.getElementById("notes").textContent.includes("does not answer")`)
}
