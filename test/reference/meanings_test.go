package reference

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// meaning is what an annotated sample says of a key.
type meaning struct {
	text   string
	preset string // in brackets: what counts when it is left out
	ours   bool   // Poolkeeper has added it
}

// meanings are those of all keys, by their path and by the mapping that they are in.
type meanings struct {
	byPath, byKind map[string]meaning
}

// remark is the remark behind a key: [ours], words, and what is in brackets at its end.
var (
	remark  = regexp.MustCompile(`\s#\s+(.*?)\s*$`)
	bracket = regexp.MustCompile(`^(.*?)\s*\[([^][]*)\]$`)
)

// of reads a remark.
func of(line string) (m meaning) {
	found := remark.FindStringSubmatch(line)
	if found == nil {
		return m
	}
	m.text, m.ours = strings.CutPrefix(found[1], "[ours]")
	m.text = strings.TrimSpace(m.text)
	if parts := bracket.FindStringSubmatch(m.text); parts != nil {
		m.text, m.preset = parts[1], parts[2]
	}
	return m
}

// sample reads one annotated sample.
type sample struct {
	lines []string
	all   map[string]meaning
}

// read collects what samples say; paths have no index, and providers[DRIVER] have their driver.
func read(t *testing.T, files ...string) map[string]meaning {
	t.Helper()
	all := map[string]meaning{}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(samples, file))
		if err != nil {
			t.Fatal(err)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		s := sample{lines: strings.Split(string(text), "\n"), all: all}
		s.visit("", doc.Content[0])
	}
	return all
}

func (s sample) visit(path string, node *yaml.Node) {
	switch node.Kind {
	case yaml.SequenceNode:
		for _, item := range node.Content {
			at := path + "[]"
			if path == "providers" {
				at = path + "[" + driverOf(item) + "]"
			}
			s.visit(at, item)
		}
	case yaml.MappingNode:
		for i := 0; i < len(node.Content); i += 2 {
			key, below := node.Content[i], node.Content[i+1]
			at := strings.TrimPrefix(path+"."+key.Value, ".")
			line := s.lines[key.Line-1]
			// One remark a line: of several keys in a line it is the first one's.
			own := strings.HasPrefix(strings.TrimLeft(line, " -"), key.Value+":")
			if have, there := s.all[at]; own && (!there || have.text == "") {
				if m := of(line); m != (meaning{}) {
					s.all[at] = m
				}
			}
			s.visit(at, below)
		}
	}
}

func driverOf(provider *yaml.Node) string {
	for i := 0; i < len(provider.Content); i += 2 {
		if provider.Content[i].Value == "driver" {
			return provider.Content[i+1].Value
		}
	}
	return "openstack"
}
