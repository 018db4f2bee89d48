package browser_test

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"poolkeeper/test/browser"
	"poolkeeper/zkmodel"
)

// annsToken is of who may all in the served site.
const annsToken = "the token of ann"

// acts logs in without scripts, pauses an image for a reason, sees that, and resumes it with scripts. Mistakes: a policy that
// refuses the form; a cookie that the browser does not send back; an action that is not seen on the page that is open.
func acts(t *testing.T, b *browser.Browser, s *served) {
	t.Helper()
	const image = "rockylinux-9"
	at := s.url + "/images/" + image
	paused := func() *zkmodel.FlagPause {
		i, err := zkmodel.NewStore(s.session, nil).Image(t.Context(), image)
		if err != nil {
			t.Fatal(err)
		}
		return i.PausedBy
	}
	b.Size(390, 844)
	b.Do(emulation.SetScriptExecutionDisabled(true))
	b.Go(at)
	b.Do(chromedp.Click(`#actions a[href^="/login"]`, chromedp.ByQuery), chromedp.SendKeys("#token", annsToken+kb.Enter, chromedp.ByQuery))
	b.Until(`!!document.querySelector("#actions a[href^='/act/image-pause']")`)
	b.Do(chromedp.Click(`#actions a[href^="/act/image-pause"]`, chromedp.ByQuery), chromedp.WaitVisible("#reason", chromedp.ByQuery))
	if wide := browser.Value[int](b, "document.documentElement.scrollWidth"); wide > 390 {
		t.Errorf("a form is %d px wide on a phone", wide)
	}
	b.Do(chromedp.SendKeys("#reason", "new <kernel>", chromedp.ByQuery), chromedp.SendKeys("#for", "2h"+kb.Enter, chromedp.ByQuery))
	b.Until(`!!document.querySelector(".told") && document.querySelector(".told").textContent.includes("new <kernel>")`)
	if p := paused(); p == nil || p.By != "poolkeeper:ann" || p.Reason != "new <kernel>" || p.Until == 0 {
		t.Errorf("paused by %+v", p)
	}
	b.Do(emulation.SetScriptExecutionDisabled(false))
	b.Go(at)
	b.Until(`document.querySelector("main").textContent.includes("paused by poolkeeper:ann: new <kernel>")`)
	b.Do(chromedp.Click(`#actions a[href^="/act/image-unpause"]`, chromedp.ByQuery), chromedp.WaitVisible("form.act button", chromedp.ByQuery), chromedp.Click("form.act button", chromedp.ByQuery))
	b.Until(`!!document.querySelector(".told") && !!document.querySelector("#actions a[href^='/act/image-pause']")`)
	if p := paused(); p != nil {
		t.Errorf("still paused by %+v", p)
	}
	b.Go(s.url + "/login")
	b.Do(chromedp.Click("form.act button", chromedp.ByQuery))
	b.Until(`!!document.querySelector("#token")`)
}
