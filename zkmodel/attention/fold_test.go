package attention

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Mistake: a kind that is told with no words, or with nothing to type.
func TestEveryKindHasWords(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "kind.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if name, ok := v.Type.(*ast.Ident); ok && name.Name == "Kind" {
				declared++
			}
		}
		return true
	})
	if declared != len(kinds) {
		t.Errorf("%d kinds, %d have words", declared, len(kinds))
	}
	for kind, words := range kinds {
		if words.many == "" || words.do == "" {
			t.Errorf("%s: %+v", kind, words)
		}
	}
}

// Uploads of three images that two clouds refuse for two reasons, a build that failed, and
// nobody who launches. Mistakes: a line an image; two reasons in one line; the reason of the
// oldest; what is urgent at the end.
func TestAlikeIsFolded(t *testing.T) {
	now := time.Unix(1795161300, 0)
	upload := func(image, provider, why string, ago time.Duration) Item {
		return Item{
			Kind: UploadFailed, What: "Upload of " + image, Why: why, Since: now.Add(-ago),
			Image: image, Build: "0000000001", Provider: provider,
		}
	}
	got := Fold([]Item{
		{Kind: BuildFailed, What: "Build d-0000000002 failed", Why: "exit code 1", Image: "d", Build: "0000000002"},
		upload("a", "north", "north: 503 for a (request 5d7c9e31-0001)", 3*time.Hour),
		upload("b", "north", "north: 503 for b (request 77aa9e31-0002)", time.Minute),
		upload("c", "south", "quota exceeded: 10 of 10", time.Hour),
		upload("a", "north", "north: 503 for a (request 5d7c9e31-0003)", 2*time.Hour),
		upload("c", "north", "north: 503 for c (request 00000031-0003)", 2*time.Hour),
		upload("d", "north", "north: 503 for d (request 00000031-0003)", 2*time.Hour),
		{Kind: NoLauncher, What: "No launcher is running", Urgent: true},
	})
	want := []Group{
		{Kind: NoLauncher, What: "No launcher is running", Do: "systemctl start poolkeeper-launcher", Count: 1, Urgent: true},
		{
			Kind: BuildFailed, What: "Build d-0000000002 failed", Why: "exit code 1", Do: "poolkeeper build-log d-0000000002",
			Count: 1, Images: []string{"d"},
		},
		{
			Kind: UploadFailed, What: "5 uploads failed in north: a, b and 2 more", Why: "north: 503 for b (request 77aa9e31-0002)",
			Do: "poolkeeper explain b", Since: now.Add(-3 * time.Hour), Count: 5, Images: []string{"a", "b", "c", "d"}, Providers: []string{"north"},
		},
		{
			Kind: UploadFailed, What: "Upload of c", Why: "quota exceeded: 10 of 10", Do: "poolkeeper explain c",
			Since: now.Add(-time.Hour), Count: 1, Images: []string{"c"}, Providers: []string{"south"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("folded (-want +got):\n%s", diff)
	}
}

// Mistakes: an image whose name is part of a word, which splits what is alike; a name out of
// the tree that runs in the shell of who pastes the line.
func TestNames(t *testing.T) {
	short := []Item{{Kind: UploadFailed, Image: "quota", Why: "quotas: no"}, {Kind: UploadFailed, Image: "b", Why: "quotas: no"}}
	if got := Fold(short); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	bad := Item{Kind: TrialFailed, Image: "x; reboot"}
	good := Item{Kind: Verdict, Image: "IMAGES", Build: "0000000001", Provider: "north"}
	if bad.Do() != "poolkeeper image-build IMAGE" || good.Do() != "poolkeeper image-promote IMAGES-0000000001 --provider north" {
		t.Errorf("%s\n%s", bad.Do(), good.Do())
	}
}
