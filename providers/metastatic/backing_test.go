package metastatic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"poolkeeper/providers"
)

// tree is what launchers know of backing nodes, in a file: what is asked for is there at once,
// unless it is held back.
type tree struct {
	file string

	mu       sync.Mutex
	held     bool
	watchers map[chan struct{}]bool
	quicker  func() // is called before a save, once
}

func newTree(t *testing.T, dir string) *tree {
	t.Helper()
	return &tree{file: filepath.Join(dir, "backing.json"), watchers: map[chan struct{}]bool{}}
}

func (f *tree) read() (list []providers.BackingNode) {
	if text, err := os.ReadFile(f.file); err == nil && json.Unmarshal(text, &list) != nil {
		panic("no list: " + string(text))
	}
	for i := range list {
		list[i].Revision = int(list[i].Revision.(float64)) // as JSON has it
	}
	return list
}

func (f *tree) write(list []providers.BackingNode) {
	text, err := json.Marshal(list)
	if err == nil {
		err = os.WriteFile(f.file, text, 0o600)
	}
	if err != nil {
		panic(err)
	}
	for w := range f.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

// change changes all of them, as what launchers do.
func (f *tree) change(one func(n *providers.BackingNode)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.read()
	for i := range list {
		one(&list[i])
		list[i].Revision = list[i].Revision.(int) + 1
	}
	f.write(list)
}

func (f *tree) List(ctx context.Context) ([]providers.BackingNode, any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.read()
	return all, len(all), context.Cause(ctx)
}

func (f *tree) Save(ctx context.Context, changed ...providers.BackingNode) error {
	if f.quicker != nil {
		first := f.quicker
		f.quicker = nil
		first()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	list := f.read()
	if n := changed[0]; n.ID == "" {
		if n.Revision != len(list) {
			return fmt.Errorf("add one: %w", providers.ErrChanged)
		}
		n.ID, n.Revision = fmt.Sprint("b", len(list)), 0
		if !f.held {
			there(&n)
		}
		f.write(append(list, n))
		return nil
	}
	for _, n := range changed {
		i := slices.IndexFunc(list, func(was providers.BackingNode) bool { return was.ID == n.ID })
		if i < 0 || list[i].Revision != n.Revision {
			return fmt.Errorf("save %s: %w", n.ID, providers.ErrChanged)
		}
		n.Revision = n.Revision.(int) + 1
		list[i] = n
	}
	f.write(list)
	return nil
}

// there gives what is asked for its node.
func there(n *providers.BackingNode) {
	n.Node, n.Like = "000000000"+n.ID, providers.Instance{InterfaceIP: "192.0.2.7"}
}

func (f *tree) Watch() (changed <-chan struct{}, stop func()) {
	w := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers[w] = true
	return w, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, w)
	}
}
