package wave

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/zkmodel/recipe"
)

// Tree follows what daemons must know of all waves: not their jobs, of which there may be
// many, and which only who drives a wave reads.
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
	case statusFolder:
		return []recipe.Interest{recipe.Children, recipe.Data, recipe.None}[min(len(names), 3)-1]
	case "hold":
		return recipe.Data
	}
	return recipe.None
}

// Entries lists all waves, the oldest first.
func (t *Tree) Entries() []*Entry {
	var list []*Entry
	for _, id := range t.Children(Root + "/requests") {
		if e := t.Entry(id); e != nil {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, older)
	return list
}

// Entry is one wave, or nil.
func (t *Tree) Entry(id string) (e *Entry) {
	t.View(func(v recipe.View) {
		path := Root + "/requests/" + id
		request, ok := v.Get(path)
		status, there := v.Get(statusPath(id))
		if !ok || !there || request.Err != nil || status.Err != nil {
			return
		}
		e = decode(id, request.Data, request.Stat, status.Data)
		for _, name := range v.Children(path) {
			if mark, ok := v.Get(path + "/" + name); ok {
				e.mark(name, mark.Data)
			}
		}
	})
	return e
}

// AllHeld says why all waves are held, and whether they are.
func (t *Tree) AllHeld() (word Word, held bool) {
	entry, held := t.Get(HoldPath)
	_ = json.Unmarshal(entry.Data, &word) // what cannot be decoded holds, too
	return word, held
}
