package configs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"poolkeeper/configs/yamltext"
)

// value is one node of a file together with the way to it, so that whatever is
// wrong with it can be said with file, line and key.
type value struct {
	src    *source
	node   *yaml.Node
	at     *step
	secret bool // its text must not be shown
	// line is where a person looks for it, when that is not where its text
	// begins: at its key if it is a block below that, at an alias of it.
	line int
	// item is the nearest one around it that can be left out without the rest.
	item *step
	// unread says that it is sealed and cannot be opened, which has been told.
	unread bool
	// unsealed says that it was sealed, and is opened: no message quotes any of it.
	unsealed bool
	// asks is set where nothing is decoded: it notes what the value is taken for.
	asks *Shape
}

// step is one step of the way from the top of a file to a value.
type step struct {
	up   *step
	name string // ".key" or "[item]", for people
	to   yamltext.Step
}

// path is the way from the top: other than String it is never that of another value.
func (s *step) path() yamltext.Path {
	if s == nil {
		return nil
	}
	return append(s.up.path(), s.to)
}

// keyStep and itemStep are steps to a key and to the item at an index, which may have a name.
func keyStep(up *step, key string) *step {
	return &step{up, "." + shown(key), yamltext.Step{Name: key}}
}

func itemStep(up *step, name string, at int) *step {
	return &step{up, "[" + cmp.Or(shown(name), strconv.Itoa(at)) + "]", yamltext.Path{}.Item(name, at)[0]}
}

func (s *step) String() string {
	if s == nil {
		return ""
	}
	if s.up == nil {
		return s.name[1:] // a top-level key has no dot before it
	}
	return s.up.String() + s.name
}

func (v value) report(sev severity, format string, args ...any) { _ = v.note(sev, format, args...) }

// note is report for who has to add to the finding later.
func (v value) note(sev severity, format string, args ...any) *Finding {
	if sev == fault && v.item != nil {
		sev = freezes
	}
	message := fmt.Sprintf(format, args...)
	if v.unsealed && quotes(message, v.node.Value) {
		message = "the sealed value is not what the key wants"
	}
	f := v.src.note(sev, cmp.Or(v.line, v.node.Line), v.at.String(), message, v.node)
	if sev == freezes {
		v.leaveOut(f)
	}
	return f
}

// quotes reports whether a message holds a word of a text: some say which word is wrong.
func quotes(message, text string) bool {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(word) > 1 && strings.Contains(message, word) {
			return true
		}
	}
	return strings.Contains(message, text)
}

// inSecureFile begins the place of an item in the secure file.
const inSecureFile = "secure "

// leaveOut leaves out the item that v is in, because of a finding, which is an
// error where there is none.
func (v value) leaveOut(why *Finding) {
	switch {
	case v.item == nil:
		why.sev = fault
		return
	case why.sev < freezes:
		why.sev = freezes
	}
	at := v.item.String()
	if v.src.secret {
		at = inSecureFile + at
	}
	if left := v.src.load.left; left[at] == nil {
		left[at] = why
	}
}

func (v value) fail(format string, args ...any) { v.report(fault, format, args...) }

// section is the list that the value is, as far as names of it are referred to.
func (v value) section() *section { return v.src.load.section(v.at.String()) }

// later runs check when everything has been read, for what can only be judged
// by looking at other parts of the configuration.
func (v value) later(check func()) {
	v.src.load.checks = append(v.src.load.checks, check)
}

// child is a node below v, at a place.
func (v value) child(node *yaml.Node, at *step) value {
	one := value{src: v.src, node: node, at: at, secret: v.secret, item: v.item}
	if node.Kind == yaml.AliasNode {
		one.line = node.Line
	}
	return one.resolved()
}

// below is the value of a key. What is wrong with a block is to be found at the
// key, not at the first line of what is in it.
func (v value) below(key, node *yaml.Node, name string) value {
	one := v.child(node, keyStep(v.at, name))
	block := one.node.Kind != yaml.ScalarNode && one.node.Style&yaml.FlowStyle == 0
	if block || one.line > 0 || one.isNull() {
		one.line = key.Line
	}
	return one
}

// shown is a name as part of a key in a message, which is one line. What
// follows an equals sign may be a secret that was written at the wrong place.
func shown(name string) string {
	if before, _, found := strings.Cut(name, "="); found {
		name = before + "=…"
	}
	if len(name) > 80 {
		name = strings.ToValidUTF8(name[:80], "") + "…"
	}
	if strings.ContainsFunc(name, notPrintable) {
		return strconv.Quote(name)
	}
	return name
}

// resolved follows an alias to what it stands for. An anchor that holds itself
// can do no harm: what is read is only as deep as the schema.
func (v value) resolved() value {
	for range 100 {
		if v.node.Kind != yaml.AliasNode {
			return v
		}
		v.node = v.node.Alias
	}
	return v
}

// spend takes one visit from the budget. It is false when nothing is left.
func (v value) spend() bool {
	v.src.budget--
	if v.src.budget == 0 {
		v.item = nil // what comes after it is not read either
		v.fail("the aliases of this file stand for too much text")
	}
	return v.src.budget > 0
}

// items are the elements of a list, named by their name key or their index.
func (v value) items() []value {
	if v.asks != nil {
		return v.saysItems()
	}
	if v.node.Kind != yaml.SequenceNode {
		v.section().doubt(nil)
		v.fail("expected a list, got %s", v.describe())
		return nil
	}
	var items []value
	for i, node := range v.node.Content {
		if !v.spend() {
			return nil
		}
		item := v.child(node, nil)
		item.at = itemStep(v.at, yamltext.ItemName(item.node), i)
		if item.isNull() {
			v.section().doubt(item.note(refused, "the list item is empty"))
			continue
		}
		v.src.load.place(item)
		if item = item.opened(); !item.unread {
			items = append(items, item)
		}
	}
	return items
}

// entry is one key of a mapping and its value.
type entry struct {
	key string
	value
	keyLine int
}

// noteKey reports what is wrong with the key, not with its value.
func (e entry) noteKey(sev severity, format string, args ...any) *Finding {
	e.line = e.keyLine
	return e.note(sev, format, args...)
}

// entries are the keys of a mapping in the order of the file, merge keys
// (<<: *anchor) expanded: what the mapping says itself wins over what it
// merges, an earlier merge over a later one. Sealed values are opened. ok is false when v
// is no mapping.
func (v value) entries() (list []entry, ok bool) {
	list, ok = v.written()
	for i := range list {
		list[i].value = list[i].opened()
	}
	return list, ok
}

// written is entries with sealed values as they are.
func (v value) written() (list []entry, ok bool) {
	if v.node.Kind != yaml.MappingNode {
		v.fail("expected a mapping, got %s", v.describe())
		return nil, false
	}
	index := map[string]int{}
	for i := 0; i+1 < len(v.node.Content) && v.spend(); i += 2 {
		key, content := v.node.Content[i], v.node.Content[i+1]
		if yamltext.IsMerge(key) {
			continue
		}
		name := value{src: v.src, node: key, at: v.at}.resolved()
		if name.node.Kind != yaml.ScalarNode {
			name.fail("a key must be text, not %s", name.describe())
			continue
		}
		one := entry{name.node.Value, v.below(key, content, name.node.Value), key.Line}
		if at, twice := index[one.key]; twice {
			one.section().doubt(one.noteKey(lint, "the key appears twice in one mapping, the last one counts"))
			list[at] = one
			continue
		}
		index[one.key] = len(list)
		list = append(list, one)
	}
	return append(v.merged(index), list...), true
}

// merged are the entries that the mapping takes over from others and does not
// have itself. Of several merge keys the last one wins, as with Nodepool; of the
// list below one of them the first.
func (v value) merged(own map[string]int) []entry {
	if v.src.merging[v.node] {
		v.fail("the mapping merges itself")
		return nil
	}
	v.src.merging[v.node] = true
	defer delete(v.src.merging, v.node)
	var list []entry
	have := map[string]bool{}
	merges := 0
	for i := len(v.node.Content) - 2; i >= 0; i -= 2 {
		key := v.node.Content[i]
		if !yamltext.IsMerge(key) {
			continue
		}
		if merges++; merges == 2 {
			v.child(key, keyStep(v.at, "<<")).report(lint, "there is another one below, which wins; write <<: [*one, *two], where the first one wins")
		}
		for _, from := range v.below(key, v.node.Content[i+1], "<<").mergeSources() {
			entries, _ := from.written()
			for _, e := range entries {
				if _, mine := own[e.key]; mine || have[e.key] {
					continue
				}
				have[e.key] = true
				e.at = keyStep(v.at, e.key)
				list = append(list, e)
			}
		}
	}
	return list
}

// mergeSources are the mappings that a merge key names.
func (v value) mergeSources() []value {
	if !v.spend() {
		return nil
	}
	if v.node.Kind == yaml.SequenceNode {
		return v.items()
	}
	return []value{v}
}

// peek is the text of a scalar below a mapping's key, "" when there is none,
// before the mapping is decoded.
func (v value) peek(key string) string { return yamltext.Text(v.node, key) }
