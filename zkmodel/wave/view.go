package wave

import (
	"encoding/json"
	"strings"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/zkmodel/recipe"
)

// Tree follows what daemons must know of all waves: which there are, and what operators
// want of them. How far they have come changes often, and is read by who works at it.
type Tree struct{ *recipe.Tree }

// NewTree makes a Tree. Where there is no wave it follows one znode that is not there.
func NewTree(c *recipe.Client, log hclog.Logger) *Tree {
	return &Tree{recipe.NewTree(c, Root, recipe.TreeOptions{Filter: interest, Logger: log})}
}

// interest says what is followed.
func interest(p string) recipe.Interest {
	rest := strings.TrimPrefix(strings.TrimPrefix(p, Root), "/")
	if rest == "" {
		return recipe.Children
	}
	names := strings.Split(rest, "/")
	switch names[0] {
	case "requests":
		return []recipe.Interest{recipe.Children, recipe.Data | recipe.Children, recipe.Data}[min(len(names), 3)-1]
	case "hold":
		return recipe.Data
	}
	return recipe.None
}

// IDs are those of all waves.
func (t *Tree) IDs() []string { return t.Children(requestsPath) }

// Used reports whether there is, or was, a wave: something of one may be left.
func (t *Tree) Used() bool { return len(t.Children(Root)) > 0 }

// Marks are what operators want of a wave; false when there is no such wave.
func (t *Tree) Marks(id string) (marks map[Mark]Word, there bool) {
	path := requestsPath + "/" + id
	e := &Entry{Marks: map[Mark]Word{}}
	t.View(func(v recipe.View) {
		_, there = v.Get(path)
		for _, name := range v.Children(path) {
			if mark, ok := v.Get(path + "/" + name); ok {
				e.mark(name, mark.Data)
			}
		}
	})
	return e.Marks, there
}

// AllHeld says why all waves are held, and whether they are.
func (t *Tree) AllHeld() (word Word, held bool) {
	entry, held := t.Get(HoldPath)
	_ = json.Unmarshal(entry.Data, &word) // what cannot be decoded holds, too
	return word, held
}
