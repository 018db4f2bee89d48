package secret

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"poolkeeper/configs/sealed"
)

// The clouds.yaml that docs/secrets.md shows, with the command in its remark: a cloud that
// merges another one's entry gets a password of its own and keeps address and user.
func TestMergedCloudsOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/secrets.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.Split(string(page), "```yaml\n")
	if len(shown) != 2 {
		t.Fatalf("docs/secrets.md shows %d configurations, and this test uses one", len(shown)-1)
	}
	text, _, _ := strings.Cut(shown[1], "```\n")
	_, remark, found := strings.Cut(text, "# then: secret set clouds.yaml ")
	if !found {
		t.Fatalf("no command in\n%s", text)
	}
	three, _, _ := strings.Cut(remark, "\n")
	const two = "clouds.two.auth.password"

	dir := t.TempDir()
	file := filepath.Join(dir, "clouds.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := sealed.New(filepath.Join(dir, "fleet.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keys.File(), keys.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{two, three} {
		from := filepath.Join(dir, "value")
		if err := os.WriteFile(from, []byte("word of "+place), 0o600); err != nil {
			t.Fatal(err)
		}
		a := &App{Stdout: io.Discard, Stderr: io.Discard}
		if err := (&SetCmd{File: file, Path: place, From: from}).Run(t.Context(), a, &Cmd{Key: keys.File()}); err != nil {
			t.Fatalf("secret set %s: %v", place, err)
		}
	}

	after, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Clouds map[string]struct {
			Auth map[string]string
		}
	}
	if err := yaml.Unmarshal(after, &read); err != nil {
		t.Fatalf("%v:\n%s", err, after)
	}
	for name, place := range map[string]string{"two": two, "three": three} {
		auth := read.Clouds[name].Auth
		if got, err := keys.Open(auth["password"], place); err != nil || got != "word of "+place {
			t.Errorf("%s: %q, %v", place, got, err)
		}
		if auth["auth_url"] != "https://…" || auth["username"] != "ci" {
			t.Errorf("%s lost what it merges: %v", name, auth)
		}
	}
}
