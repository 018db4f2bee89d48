package configs

import (
	"strings"
	"testing"
)

// Mistakes: a token in place of its hash that is shown in a message; a header that each client sets; a proxy that is
// believed from everywhere; a right that nobody knows, which is taken for none or for all; the hash
// of an empty variable of a shell, which lets all in.
func TestWhoMayActIsRead(t *testing.T) {
	hash := TokenHash("a secret")
	good := "webapp: {tokens: [{name: ann, hash: '" + hash + "', may: operate}], proxy-user: {header: x-remote-user, from: [10.0.0.9, '2001:db8::/64'], users: [{name: bob, may: destroy}]}}\n"
	c, err := Load(write(t, "x.yaml", site+good), Options{Env: alone()})
	if err != nil {
		t.Fatal(err)
	}
	w := c.WebApp
	if !w.Acts() || !w.Tokens[0].Is("a secret") || w.Tokens[0].Is("a Secret") || w.ProxyUser.Header != "X-Remote-User" || w.ProxyUser.Of("bob") != MayDestroy || w.ProxyUser.Of("eve") != "" {
		t.Errorf("%+v %+v", w, w.ProxyUser)
	}
	for text, want := range map[string]string{
		"{tokens: [{name: ann, hash: open-sesame, may: read}]}":                                    "it is not the hash of a token",
		"{tokens: [{name: ann, hash: '" + TokenHash("") + "', may: read}]}":                        "of an empty text",
		"{tokens: [{name: ann, hash: '" + hash + "', may: all}]}":                                  "expected one of read, operate, destroy",
		"{tokens: [{name: ann, hash: '" + hash + "'}]}":                                            "may",
		"{proxy-user: {header: Cookie, from: [10.0.0.9]}}":                                         "that the proxy alone sets",
		"{proxy-user: {header: X-Remote-User, from: [0.0.0.0/0]}}":                                 "is no address and no network",
		"{proxy-user: {header: X-Remote-User, from: []}}":                                          "believed from nowhere",
		"{proxy-user: {header: X-Remote-User, from: [10.0.0.9], users: [{name: bob, may: sure}]}}": "expected one of read, operate, destroy",
	} {
		c, err := Load(write(t, "x.yaml", site+"webapp: "+text+"\n"), Options{Env: alone()})
		said := ""
		if err != nil {
			said = err.Error()
		} else {
			said = strings.Join(c.Warnings, "\n")
		}
		if !strings.Contains(said, want) || strings.Contains(said, "open-sesame") {
			t.Errorf("%s: %q, want %q", text, said, want)
		}
		if err == nil && (len(c.WebApp.Tokens) > 0 || c.WebApp.ProxyUser != nil && c.WebApp.ProxyUser.Of("bob") != "") {
			t.Errorf("%s opens something", text)
		}
	}
}
