package container

import (
	"os"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// The Containerfile is one to buildkit's parser, without warnings, and has what its comment
// says: nothing below the root that we have made, and no root as its user.
func TestContainerfile(t *testing.T) {
	f, err := os.Open("Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // only read
	result, err := parser.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Warnings) > 0 {
		t.Errorf("warnings: %v", result.Warnings)
	}
	var lines []string
	for _, node := range result.AST.Children {
		words := []string{strings.ToUpper(node.Value)}
		for n := node.Next; n != nil; n = n.Next {
			words = append(words, n.Value)
		}
		lines = append(lines, strings.Join(words, " "))
	}
	all := strings.Join(lines, "\n") + "\n"
	for _, want := range []string{"FROM scratch\n", "ADD root.tar /\n", "USER 65534:65534\n", "ENTRYPOINT /usr/bin/poolkeeper\n", "CMD launcher\n"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if strings.Count(all, "FROM ") != 1 {
		t.Errorf("more than one root in\n%s", all)
	}
}
