package buildlog

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"poolkeeper/test/webtest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// failedBuild is the log of a build that failed, with phases, colours and what is no HTML.
var failedBuild = strings.Join([]string{
	"2026-11-23 03:00:00.000 | diskimage-builder version 3.40.0",
	"2026-11-23 03:00:01.000 | dib-run-parts Running /tmp/x/hooks/root.d/10-base",
	"2026-11-23 03:00:02.000 | \x1b[32mall well\x1b[0m <script>alert(1)</script>",
	"2026-11-23 03:00:31.000 | dib-run-parts Running /tmp/x/hooks/install.d/50-packages",
	"2026-11-23 03:00:32.000 | E: Unable to locate package no-such-package",
	"2026-11-23 03:00:33.000 | + /usr/lib/x:main:1  :   trap_cleanup",
	"2026-11-23 03:00:34.000 | rm: cannot remove 'x'",
	"Exit code: 100", "",
}, "\n")

// Mistakes: a log that is not escaped, an index that leads to the wrong line, what was said
// while cleaning up that is taken for the error, names that are not checked.
func TestPage(t *testing.T) {
	d, path := newDir(t)
	appendTo(t, path("image-a", "0000000001"), failedBuild)
	appendTo(t, path("image-a", "0000000002"), strings.Repeat("line\n", 1200))
	appendTo(t, path("image-b", "0000000001"), "")
	build := zkmodel.DecodeBuild("image-a", "0000000001", []byte(`{"state": "failed"}`), recipe.Stat{})
	h := newHandler(d, &zkmodel.Image{Name: "image-a", Builds: []*zkmodel.BuildTree{{Build: build}}})
	page := get(t, h, "/build-log/image-a-0000000001")
	page.Expect(t, http.StatusOK)
	const here = "/build-log/image-a-0000000001"
	for _, want := range []string{
		`<span class="st bad">failed</span>`, "exit code 100", "8 lines", `<a href="/log/image-a-0000000001">as text</a>`,
		`<div id="L3"><a href="` + here + `?from=1#L3" aria-label="line 3">3</a><code>2026-11-23 03:00:02.000 | <span class="f2">all well</span> &lt;script&gt;`,
		`<li><a href="` + here + `?line=2#L2">root.d</a> <small>line 2, 30s</small></li>`,
		`<li><a href="` + here + `?line=4#L4">install.d</a>`, `clean up after a failure`,
		`<a href="` + here + `?line=5#L5">why it failed: line 5</a> <span class="why">E: Unable to locate package no-such-package</span>`,
		`first error: line 5`, `<div id="L5" class="cause">`, `<div id="L2" class="phase">`, "lines 1–8 of 8", "This is the end",
	} {
		if !strings.Contains(page.Body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page.Body, "<script>alert") || strings.Contains(page.Body, "\x1b") || strings.Contains(page.Body, `data-follow="`) {
		t.Errorf("the page has what it must not: %s", page.Body)
	}
	long := "/build-log/image-a-0000000002"
	for query, want := range map[string][]string{
		"":                    {"lines 701–1200 of 1200", `<a href="` + long + `?from=201">earlier</a>`, `id="L701"`},
		"?from=1":             {"lines 1–500 of 1200", `<a href="` + long + `?from=501">later</a>`, `<a href="` + long + `#end">last lines</a>`},
		"?line=600":           {"lines 475–974 of 1200", `id="L600"`},
		"?from=10&lines=20":   {"lines 10–29 of 1200", `?from=30&amp;lines=20">later</a>`, `?from=10&amp;lines=20#L12"`},
		"?from=99999":         {"lines 1200–1200 of 1200"},
		"?from=1&lines=99999": {"lines 1–1200 of 1200"},
	} {
		answer := get(t, h, long+query)
		answer.Expect(t, http.StatusOK)
		for _, w := range want {
			if !strings.Contains(answer.Body, w) {
				t.Errorf("%s lacks %s", query, w)
			}
		}
	}
	if empty := get(t, h, "/build-log/image-b-0000000001"); !strings.Contains(empty.Body, "no lines yet") {
		t.Errorf("an empty log: %s", empty.Body)
	}
	for _, wrong := range []string{
		"?from=0", "?from=-1", "?line=x", "?lines=0",
	} {
		get(t, h, long+wrong).Expect(t, http.StatusNotFound)
	}
	for _, wrong := range []string{"/build-log/image", "/build-log/..%2f..%2fetc-passwd", "/build-log/image%00-1", "/build-log/image-..%2fx"} {
		get(t, newHandler(noLogs{}), wrong).Expect(t, http.StatusNotFound) // opening panics
		get(t, newHandler(noLogs{}), wrong+"/follow?from=1").Expect(t, http.StatusBadRequest)
	}
}

// A log that is not here: who has it, with a link where there is one that may be one.
func TestPageOfALogOfAnotherHost(t *testing.T) {
	d, _ := newDir(t)
	image := &zkmodel.Image{Name: "image"}
	for id, data := range map[string]string{
		"0000000001": `{"builder": "b2", "log": "http://b2:8005/log/image-0000000001"}`,
		"0000000002": `{"builder": "b3", "log": "javascript:alert(1)"}`,
		"0000000003": `{}`,
	} {
		image.Builds = append(image.Builds, &zkmodel.BuildTree{Build: zkmodel.DecodeBuild("image", id, []byte(data), recipe.Stat{})})
	}
	for name, h := range map[string]*Handler{"a builder": newHandler(d, image), "a launcher": newHandler(nil, image)} {
		one := get(t, h, "/build-log/image-0000000001")
		one.Expect(t, http.StatusOK)
		for _, want := range []string{"on this host; see http://b2:8005/log/", `href="http://b2:8005/build-log/image-0000000001"`, `href="http://b2:8005/log/image-0000000001"`} {
			if !strings.Contains(one.Body, want) {
				t.Errorf("%s: the page lacks %q: %s", name, want, one.Body)
			}
		}
		two := get(t, h, "/build-log/image-0000000002")
		two.Expect(t, http.StatusOK)
		if !strings.Contains(two.Body, "it was built on b3") || strings.Contains(two.Body, "javascript:") {
			t.Errorf("%s: %s", name, two.Body)
		}
		get(t, h, "/build-log/image-0000000003").Expect(t, http.StatusNotFound)
		get(t, h, "/build-log/image-0000000004").Expect(t, http.StatusNotFound)
		get(t, h, "/build-log/image-0000000001/follow?from=1").Expect(t, http.StatusNotFound)
	}
}

// A page that follows gets each line once, as rows, and the end. Two builds are written beside each other.
func TestPageFollows(t *testing.T) {
	d, path := newDir(t)
	h := newHandler(d)
	server := httptest.NewServer(routes(h))
	t.Cleanup(server.Close)
	grew, done := d.Writing("image", "0000000001")
	_, otherDone := d.Writing("other", "0000000001")
	defer otherDone()
	appendTo(t, path("image", "0000000001"), "one\ntw")
	appendTo(t, path("other", "0000000001"), "OTHER\n")
	page := get(t, h, "/build-log/image-0000000001").Body
	if want := `data-follow="/build-log/image-0000000001/follow?from=2"`; !strings.Contains(page, want) || !strings.Contains(page, "The build is running") {
		t.Errorf("the page lacks %s: %s", want, page)
	}
	if past := get(t, h, "/build-log/image-0000000001?from=1&lines=1").Body; strings.Contains(past, `data-follow="`) {
		t.Error("a page follows whose last line is not the log's")
	}
	follow := webtest.Fetch(t, server.URL+"/build-log/image-0000000001/follow?from=1")
	follow.Expect(t, http.StatusOK)
	if kind := follow.Header.Get("Content-Type"); kind != "text/event-stream; charset=utf-8" {
		t.Errorf("it is %s", kind)
	}
	appendTo(t, path("image", "0000000001"), "o\n<b>\x1b[31mthree")
	grew()
	appendTo(t, path("image", "0000000001"), "\nno end")
	done()
	text := follow.Text(t)
	for i, line := range []string{"one", "two", `&lt;b&gt;<span class="f1">three</span>`, "no end"} {
		n := i + 1
		if got := strings.Count(text, fmt.Sprintf(`<div id="L%d">`, n)); got != 1 || !strings.Contains(text, fmt.Sprintf("#L%d\" aria-label=\"line %d\">%d</a><code>%s</code>", n, n, n, line)) {
			t.Errorf("line %d is there %d times: %s", n, got, text)
		}
	}
	if !strings.HasSuffix(text, "event: end\nid: 5\ndata:\n\n") || strings.Contains(text, "OTHER") {
		t.Errorf("the stream is %q", text)
	}
}

// A log that was cut off has other lines than the page: the page is told to begin again. A place
// among those who follow is given back.
func TestPageOfALogThatIsCutOff(t *testing.T) {
	d, path := newDir(t)
	_, done := d.Writing("image", "0000000001")
	defer done()
	appendTo(t, path("image", "0000000001"), "one\n")
	h := newHandler(d)
	h.followers = make(chan struct{}, 1)
	server := httptest.NewServer(routes(h))
	t.Cleanup(server.Close)
	again := webtest.Fetch(t, server.URL+"/build-log/image-0000000001/follow?from=7")
	if got := again.Text(t); !strings.HasPrefix(got, "event: again\n") {
		t.Errorf("got %q", got)
	}
	h.followers <- struct{}{}
	full := webtest.Fetch(t, server.URL+"/build-log/image-0000000001/follow?from=1")
	full.Expect(t, http.StatusServiceUnavailable)
	<-h.followers
}

// BenchmarkFirstPaint is the time until a browser has the page of a log of 50 MB that nobody
// has looked at before; again is that of the next one.
func BenchmarkFirstPaint(b *testing.B) {
	d, _ := largeLog(b)
	serve := func(h *Handler) int {
		w := httptest.NewRecorder()
		routes(h).ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/build-log/image-0000000001", nil))
		return w.Body.Len()
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			b.ReportMetric(float64(serve(newHandler(d))), "bytes")
		}
	})
	b.Run("again", func(b *testing.B) {
		h := newHandler(d)
		serve(h)
		for b.Loop() {
			serve(h)
		}
	})
	b.Run("index", func(b *testing.B) {
		file, _, err := d.Open("image", "0000000001")
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		for b.Loop() {
			if _, err := new(index).advance(file, later()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
