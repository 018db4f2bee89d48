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

// Followed says what is followed below Root by who shows how far waves have come, and, of the wave of an id, its jobs; ""
// is none. It is the Filter of a recipe.Tree.
func Followed(id string) func(path string) recipe.Interest {
	return func(p string) recipe.Interest {
		names := strings.Split(strings.TrimPrefix(strings.TrimPrefix(p, Root), "/"), "/")
		of := len(names) > 1 && names[1] == id
		switch {
		case names[0] == statusFolder && len(names) == 1, (names[0] == statesFolder || names[0] == jobsFolder) && (len(names) == 1 || of && len(names) == 2):
			return recipe.Children
		case names[0] == statusFolder && len(names) == 2, names[0] == jobsFolder && of && len(names) == 3:
			return recipe.Data
		case names[0] == statesFolder && of && len(names) == 3:
			return recipe.Children
		}
		return interest(p)
	}
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
