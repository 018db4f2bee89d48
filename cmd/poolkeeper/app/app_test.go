package app

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Mistakes: a name in JSON that a terminal obeys; one that is another when it is read back.
func TestJSONIsPrintable(t *testing.T) {
	const name = "a\u009b31mb\u202ec\x1b[0m é 漢 \U000e0001\u2028"
	var out strings.Builder
	if err := PrintJSON(&out, []string{name}); err != nil {
		t.Fatal(err)
	}
	var read []string
	if err := json.Unmarshal([]byte(out.String()), &read); err != nil || len(read) != 1 || read[0] != name {
		t.Errorf("%q was printed as %s: %v", name, out.String(), err)
	}
	if want := "[\n  \"a\\u009b31mb\\u202ec\\u001b[0m é 漢 \\udb40\\udc01\\u2028\"\n]\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

// What looks like a secret by its name is one, whatever file it stands in.
func TestSecretsOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	main := write("nodepool.yaml", `
zookeeper-servers: [{host: 127.0.0.1}]
diskimages:
  - name: base
    abstract: true
    env-vars: {MIRROR_TOKEN: value-of-mirror, DIB_RELEASE: bookworm}
  - {name: a, parent: base, elements: [vm], env-vars: {DIB_DEV_USER_PASSWORD: value-of-password, TOKENIZER: value-of-tokenizer}}
  - {name: b, parent: base, elements: [vm], env-vars: {AWS_SECRET_ACCESS_KEY: value-of-aws, SSH_KEYS: value-of-keys}}
`)
	secure := write("secure.yaml", `
zookeeper-auth: {user: u, password: value-of-zookeeper}
webapp: {token: value-of-the-token}
diskimages: [{name: a, env-vars: {PLAIN: value-of-plain}}]
`)
	a := &App{Flags: &Flags{Config: main, Secure: secure}}
	if _, err := a.Config(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string]bool{
		"mirror": true, "password": true, "aws": true, "zookeeper": true, "the-token": true, "plain": true,
		"tokenizer": false, "keys": false,
	} {
		if got := a.Secrets.Has("value-of-" + name); got != secret {
			t.Errorf("value-of-%s: is a secret: %t, want %t", name, got, secret)
		}
	}
}

func TestConfirmed(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "yes\n": true, " YES \n": true, "Y\n": true, "": false, "\n": false, "n\n": false, "yesterday\n": false} {
		a := &App{Stdin: strings.NewReader(answer), Stdout: io.Discard}
		if got := a.Confirmed(t.Context(), "Really? "); got != want {
			t.Errorf("%q: %t", answer, got)
		}
	}
}
