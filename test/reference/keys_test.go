package reference

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"poolkeeper/configs"
)

// key is one key of a file: where it is, what it may be, and what the samples say of it.
type key struct {
	path   string
	name   string
	shape  *configs.Shape
	needed bool
	meaning
}

// table is one mapping of a file.
type table struct {
	path, title string
	keys        []key
}

// book is a file with all its mappings.
type book struct {
	t        *testing.T
	meanings meanings
	origin   map[string]*configs.Shape // of what is said in byKind
	tables   []table
	like     *book  // what the same keys mean elsewhere; nil for the main file
	file     string // "" is the main one, else secure or host
}

// bookOf is what the code and the samples say of a file.
func bookOf(t *testing.T, root *configs.Shape, like *book, files ...string) *book {
	t.Helper()
	b := &book{t: t, meanings: meanings{byPath: read(t, files...), byKind: map[string]meaning{}}, origin: map[string]*configs.Shape{}, like: like}
	b.learn("", root)
	b.visit("", "The file", root, false)
	return b
}

// mainBook is the book of the main file.
func mainBook(t *testing.T) *book {
	t.Helper()
	return bookOf(t, configs.Describe().Main, nil, "openstack.yaml", "poolkeeper.yaml", "kubernetes.yaml", "metastatic.yaml", "aws.yaml", "loadtest.yaml")
}

// same reports whether a key is the main file's.
func (b *book) same(path string, s *configs.Shape) bool {
	if b.like == nil {
		return false
	}
	for _, one := range b.like.tables {
		for _, k := range one.keys {
			if k.path == path {
				return reflect.DeepEqual(k.shape, s)
			}
		}
	}
	return false
}

// learn notes what is said of a key of one mapping for those of the same kind.
func (b *book) learn(path string, s *configs.Shape) {
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		if m, said := b.meanings.byPath[at]; said {
			if _, have := b.meanings.byKind[s.Kind+" "+name]; !have {
				b.meanings.byKind[s.Kind+" "+name], b.origin[s.Kind+" "+name] = m, s.Fields[name]
			}
		}
		b.learn(at, s.Fields[name])
	}
	for _, item := range s.Items {
		b.learn(fmt.Sprintf("%s[%s]", path, item.Driver), item)
	}
}

// meaningOf is what is said of a key: at its path, or of such a key elsewhere.
func (b *book) meaningOf(path, kind, name string, s *configs.Shape) meaning {
	if m, said := b.meanings.byPath[path]; said {
		return m
	}
	if kind == "hook" || kind == "source" { // which are waves, too
		kind = "wave"
	}
	if name == "driver" {
		return meaning{}
	}
	m := b.meanings.byKind[kind+" "+name]
	if from := b.origin[kind+" "+name]; from != nil && !reflect.DeepEqual(from.Default, s.Default) {
		m.preset = ""
	}
	return m
}

// visit adds the mapping that a value is, and those below it.
func (b *book) visit(path, title string, s *configs.Shape, ours bool) {
	if len(s.Fields) > 0 {
		one := table{path: path, title: title}
		for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
			at := strings.TrimPrefix(path+"."+name, ".")
			m := b.meaningOf(at, s.Kind, name, s.Fields[name])
			m.ours = m.ours || ours
			one.keys = append(one.keys, key{path: at, name: name, shape: s.Fields[name], needed: slices.Contains(s.Required, name), meaning: m})
		}
		slices.SortStableFunc(one.keys, func(a, b key) int { // a name comes first
			return boolean(b.name == "name") - boolean(a.name == "name")
		})
		b.tables = append(b.tables, one)
		for _, k := range one.keys {
			if !b.same(k.path, k.shape) {
				b.visit(k.path, titleOf(k.path), k.shape, k.ours)
			}
		}
	}
	for _, item := range s.Items {
		at := fmt.Sprintf("%s[%s]", path, item.Driver)
		b.visit(at, titleOf(at), item, ours || b.meanings.byPath[at+".driver"].ours)
	}
}

func boolean(is bool) int {
	if is {
		return 1
	}
	return 0
}

// titleOf is the heading of a mapping: providers[static].pools[] is "providers static pools".
func titleOf(path string) string {
	return strings.TrimSpace(strings.NewReplacer("[]", "", "[", " ", "]", "", ".", " ").Replace(path))
}

// preset is what counts when a key is left out.
func (k key) preset() string {
	switch {
	case k.needed:
		return "needed"
	case strings.ContainsAny(k.meaning.preset, " ,") && k.meaning.preset != "as here":
		return k.meaning.preset
	case k.shape.Default != nil:
		return "`" + inFile(k.shape.Default) + "`"
	case k.meaning.preset != "":
		return k.meaning.preset
	}
	return ""
}

// literal tells a default that could be written from words about it.
func literal(preset string) bool {
	_, err := strconv.ParseFloat(preset, 64)
	return err == nil || preset == "true" || preset == "false"
}

// inFile is a default as a file would have it.
func inFile(preset any) string {
	if list, ok := preset.([]string); ok {
		return "[" + strings.Join(list, ", ") + "]"
	}
	return fmt.Sprint(preset)
}

// typeOf says what a value may be.
func typeOf(k key) string {
	s := k.shape
	kind := string(s.Type)
	switch {
	case s.Type == configs.List && holdsKeys(s):
		kind = "list"
	case s.Type == configs.List && s.Items[0].Type == configs.Text:
		kind = "list of texts"
	case s.Type == configs.Mapping && s.Values != nil && len(s.Fields) == 0:
		kind = "mapping to " + string(s.Values.Type)
	case s.Type == configs.Size:
		kind = "size: `500M`, `2G`"
	case s.Type == configs.Text && len(s.OneOf) > 0:
		words := slices.DeleteFunc(slices.Clone(s.OneOf), func(word string) bool { return word == "" })
		kind = "`" + strings.Join(words, "`, `") + "`"
	}
	if s.Unit != "" {
		kind += ", " + s.Unit
	}
	switch {
	case s.Least != nil && s.Most != nil:
		kind += fmt.Sprintf(", %d to %d", *s.Least, *s.Most)
	case s.Least != nil:
		kind += fmt.Sprintf(", from %d on", *s.Least)
	}
	return kind
}

// holdsKeys tells a mapping with keys, and a list of such.
func holdsKeys(s *configs.Shape) bool {
	return len(s.Fields) > 0 || len(s.Items) > 0 && len(s.Items[0].Fields) > 0
}

// below is a link to the table of a mapping.
func (b *book) below(k key) string {
	var links []string
	for _, one := range b.tables {
		if one.path == k.path || strings.HasPrefix(one.path, k.path+"[") && strings.HasSuffix(one.path, "]") && strings.Count(one.path, "[") == strings.Count(k.path, "[")+1 {
			links = append(links, fmt.Sprintf("[%s](#%s)", one.title, anchor(one.title)))
		}
	}
	return strings.Join(links, ", ")
}

// anchor is what a heading is linked by.
func anchor(title string) string { return strings.ReplaceAll(strings.ToLower(title), " ", "-") }

// page is a page that a sample names.
var page = regexp.MustCompile(`docs/([a-z-]+\.md)`)

// linked makes links of the pages that a text names.
func linked(text string) string { return page.ReplaceAllString(text, "[$1](../$1)") }

// change says when a new value of a key counts.
func change(path string) string {
	for _, start := range configs.KeysAtStart() {
		if path == start || strings.HasPrefix(path, start+".") || strings.HasPrefix(path, start+"[") {
			return "restart"
		}
	}
	if path == "images-dir" {
		return "restart"
	}
	return "reload"
}

// markdown is the reference of a file.
func (b *book) markdown(text *strings.Builder, level string, since *sinces) {
	for _, one := range b.tables {
		fmt.Fprintf(text, "\n%s %s\n\n| key | type | default | since | change | meaning |\n|---|---|---|---|---|---|\n", level, one.title)
		for _, k := range one.keys {
			came := "Nodepool"
			if k.ours {
				came = since.of(b.t, strings.TrimSpace(b.file+" "+k.path))
			}
			said := k.text
			if k.shape.Deprecated != "" {
				said = strings.TrimSpace("old: " + k.shape.Deprecated)
			}
			if said == k.shape.Unit {
				said = ""
			}
			if holdsKeys(k.shape) && b.same(k.path, k.shape) {
				said = strings.Trim(said+"; [as above](#"+anchor(titleOf(k.path))+")", "; ")
			}
			if links := b.below(k); links != "" {
				said = strings.Trim(said+"; "+links, "; ")
			}
			fmt.Fprintf(text, "| `%s` | %s | %s | %s | %s | %s |\n", k.name, typeOf(k), cell(k.preset()), came, change(k.path), cell(said))
		}
	}
}

// cell is text that ends no cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// likeOpenStack drops from a fake provider what it has in common with OpenStack's.
func (b *book) likeOpenStack() {
	shapes := map[string]*configs.Shape{}
	for _, one := range b.tables {
		for _, k := range one.keys {
			shapes[k.path] = k.shape
		}
	}
	b.tables = slices.DeleteFunc(b.tables, func(one table) bool {
		return strings.HasPrefix(one.path, "providers[fake].") && !strings.HasPrefix(one.path, "providers[fake].fake")
	})
	for i, one := range b.tables {
		if one.path == "providers[fake]" {
			b.tables[i].keys = slices.DeleteFunc(one.keys, func(k key) bool {
				other := shapes[strings.Replace(k.path, "[fake]", "[openstack]", 1)]
				return other != nil && reflect.DeepEqual(other, k.shape)
			})
		}
	}
}

// The keys of the configuration are those of the page: types, bounds and defaults as the
// decoders have them, words as the samples have them.
func TestKeys(t *testing.T) {
	files := configs.Describe()
	var text strings.Builder
	text.WriteString(`# Configuration keys

Made from the decoders of ` + "`configs`" + ` and the remarks of the annotated samples; a test holds it to both.
How to go about it: docs/configure.md. For editors: [nodepool.schema.json](nodepool.schema.json).

- **default**: what counts when the key is left out; empty is nothing.
- **since**: Nodepool, for a key of its format; else the section of [CHANGELOG.md](../../CHANGELOG.md) in which the key came. It is ours then, and Nodepool's
  daemons pass over it.
- **change**: "reload" counts as soon as a daemon reads the changed file, which it does by itself. "restart" counts at
  the daemon's next start; its log names such keys. A builder refuses a file with another ` + "`images-dir`" + ` until then.
- Any scalar may be sealed (docs/secrets.md); ` + "`%(NODEPOOL_X)`" + ` stands for a variable of the environment.
`)
	since := readSince(t)
	main := mainBook(t)
	main.likeOpenStack()
	main.markdown(&text, "##", since)
	text.WriteString("\nA `fake` provider has the keys of an `openstack` one, too.\n")
	text.WriteString("\n## The secure file\n\nWhat `-s FILE` may hold. It wins over the configuration.\n")
	secure := bookOf(t, files.Secure, mainBook(t), "secure.yaml")
	secure.named("secure")
	secure.markdown(&text, "###", since)
	text.WriteString("\n## The host file\n\nWhat `--host-config FILE` may hold beside a pushed configuration (docs/fleet-configuration.md). It wins over what is pushed.\n")
	host := bookOf(t, files.Host, mainBook(t), "host.yaml", "openstack.yaml")
	host.named("host")
	for i := range host.tables[0].keys {
		host.tables[0].keys[i].ours = true // as the file is
	}
	host.markdown(&text, "###", since)
	since.finish(t)
	same(t, "docs/reference/configuration.md", linked(text.String()))
}

// named puts a word before all headings.
func (b *book) named(word string) {
	b.file = word
	for i := range b.tables {
		b.tables[i].title = word + " " + strings.TrimPrefix(strings.ToLower(b.tables[i].title), "the ")
	}
}

// A default that a sample tells is the decoder's: catches a remark that is out of date, and a
// decoder that does not say what it takes.
func TestSamplesTellTheDefaults(t *testing.T) {
	files := configs.Describe()
	told := 0
	for _, b := range []*book{mainBook(t), bookOf(t, files.Secure, nil, "secure.yaml"), bookOf(t, files.Host, nil, "host.yaml")} {
		for _, one := range b.tables {
			for _, k := range one.keys {
				if k.shape.Type == "" {
					t.Errorf("%s: its decoder does not say what it takes", k.path)
				}
				if _, here := b.meanings.byPath[k.path]; !here || k.meaning.preset == "" {
					continue // said of the key of another driver, whose default may be another
				}
				preset := k.meaning.preset
				word := k.shape.Default != nil && !strings.ContainsAny(preset, " ,")
				if !literal(preset) && !word {
					continue
				}
				told++
				if got := inFile(k.shape.Default); !equal(preset, got) {
					t.Errorf("%s: a sample says [%s], the decoder has %s", k.path, preset, got)
				}
			}
		}
	}
	if told < 60 {
		t.Errorf("only %d defaults were compared, the test sees too little", told)
	}
}

// equal compares numbers as numbers.
func equal(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return a == b || errX == nil && errY == nil && x == y
}
