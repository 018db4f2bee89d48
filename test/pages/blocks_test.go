package pages

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBlocksOfAPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	text := "# Page\n```yaml\na: 1\n```\n\n```console\n$ one   # why\nprinted\n# two\n```\n  ```\nplain\n  ```\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	blocks, err := Read(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []Block{
		{page, 3, "yaml", "a: 1\n"},
		{page, 7, "console", "$ one   # why\nprinted\n# two\n"},
		{page, 12, "", "plain\n"},
	}
	if diff := cmp.Diff(want, blocks); diff != "" {
		t.Error(diff)
	}
	commands := blocks[1].Commands()
	if diff := cmp.Diff([]Command{{page, 7, false, "one   # why"}, {page, 9, true, "two"}}, commands); diff != "" {
		t.Error(diff)
	}
	if commands[0].Bare() != "one" {
		t.Errorf("without its comment: %q", commands[0].Bare())
	}
	if err := os.WriteFile(page, []byte("```\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(page); err == nil {
		t.Error("a block without an end is no error")
	}
}
