// Package browser opens pages in Debian's Chromium, for tests.
package browser

import (
	"context"
	_ "embed" // the script
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"poolkeeper/test/zktest"
)

// patience is how long a page may take to show what it should, on a busy machine.
const patience = 60 * time.Second

// Browser is one window of a Chromium.
type Browser struct {
	tb  testing.TB
	ctx context.Context //nolint:containedctx // chromedp keeps the window in it

	mu       sync.Mutex
	findings []string
}

// Open starts a Chromium with an empty profile, which ends with the test. Without one on this machine
// the test is skipped.
func Open(tb testing.TB) *Browser {
	tb.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("POOLKEEPER_REQUIRE_E2E") == "1" {
			tb.Fatalf("no chromium: scripts/prerequisites test installs it: %v", err)
		}
		tb.Skip("no chromium: scripts/prerequisites test installs it")
	}
	flags := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program), chromedp.UserDataDir(tb.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("force-color-profile", "srgb"),
		chromedp.WSURLReadTimeout(patience), chromedp.Env("TZ=Europe/Berlin"),
	)
	allocated, end := chromedp.NewExecAllocator(context.Background(), flags...)
	ctx, stop := chromedp.NewContext(allocated)
	b := &Browser{tb: tb, ctx: ctx}
	chromedp.ListenTarget(ctx, b.note)
	tb.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until it has ended
		stop()
		end()
	})
	b.Do()
	return b
}

// note keeps what a page complains of.
func (b *Browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.findings = append(b.findings, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			b.findings = append(b.findings, fmt.Sprintf("console: %v", e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			b.findings = append(b.findings, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// Do does things in the window, and fails the test when one cannot be done.
func (b *Browser) Do(actions ...chromedp.Action) {
	b.tb.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	// The first one starts the program, which must outlive it.
	if chromedp.FromContext(b.ctx).Browser == nil {
		ctx = b.ctx
	}
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.tb.Fatalf("in the browser: %v", err)
	}
}

// Size makes the window so large, in CSS pixels.
func (b *Browser) Size(width, height int64) {
	b.tb.Helper()
	b.Do(chromedp.EmulateViewport(width, height))
}

// Go opens a page.
func (b *Browser) Go(url string) {
	b.tb.Helper()
	b.Do(chromedp.Navigate(url), chromedp.WaitReady("main"))
}

// Value evaluates an expression in the page.
func Value[T any](b *Browser, expression string) (value T) {
	b.tb.Helper()
	b.Do(chromedp.Evaluate(expression, &value))
	return value
}

// Press presses a key that has a letter, as a keyboard does: who handles it can keep it from being typed.
func (b *Browser) Press(key string) {
	b.tb.Helper()
	b.Do(input.DispatchKeyEvent(input.KeyDown).WithKey(key).WithText(key), input.DispatchKeyEvent(input.KeyUp).WithKey(key))
}

// Until waits until an expression is true, also over a change of the page.
func (b *Browser) Until(expression string) {
	b.tb.Helper()
	zktest.Eventually(b.tb, func() bool {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		defer cancel()
		is := false
		return chromedp.Run(ctx, chromedp.Evaluate(expression, &is)) == nil && is // no answer is no yet
	}, "%s", expression)
}

//go:embed contrast.js
var contrast string

// Faint is all text of the page that has too little contrast with what is behind it, in light and in dark
// colours: less than AA of WCAG 2.2 asks for.
func (b *Browser) Faint() (found []string) {
	b.tb.Helper()
	for _, scheme := range []string{"dark", "light"} {
		b.Do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
		got := Value[struct {
			Looked int
			Found  []string
		}](b, contrast)
		if got.Looked < 20 {
			b.tb.Errorf("only %d texts were looked at", got.Looked)
		}
		for _, one := range got.Found {
			found = append(found, scheme+": "+one)
		}
	}
	return found
}

// Complaints are what pages have complained of so far.
func (b *Browser) Complaints() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.findings, "\n")
}
