package reference

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"poolkeeper/configs"
)

// schema is a JSON schema, or a part of one.
type schema = map[string]any

// writer makes the schema of a file.
type writer struct {
	book *book
	ours bool // the file itself is
}

// document is the schema of a whole file.
func (w writer) document(title string, root *configs.Shape) schema {
	one := w.mapping("", root)
	one["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	one["title"] = title
	one["$defs"] = schema{
		"replaced": schema{
			"description": "A sealed value, or one with a variable of the environment.",
			"type":        "string", "pattern": `^sealed:v1:|%\(NODEPOOL_[A-Za-z0-9_]*\)`,
		},
		"text": schema{"type": []string{"string", "number", "boolean", "null"}},
		"truth": schema{"anyOf": []any{
			schema{"type": []string{"boolean", "null"}},
			schema{"enum": configs.TruthWords()},
			schema{"$ref": "#/$defs/replaced"},
		}},
	}
	return one
}

// value is the schema of a value.
func (w writer) value(path string, s *configs.Shape) schema {
	switch s.Type {
	case configs.Text:
		if len(s.OneOf) > 0 {
			return orReplaced(schema{"enum": s.OneOf})
		}
		if s.Pattern != "" {
			return orReplaced(schema{"type": "string", "pattern": s.Pattern})
		}
		return schema{"$ref": "#/$defs/text"}
	case configs.Texts:
		return schema{"anyOf": []any{schema{"$ref": "#/$defs/text"}, schema{"type": "array", "items": schema{"$ref": "#/$defs/text"}}}}
	case configs.Bool:
		return schema{"$ref": "#/$defs/truth"}
	case configs.Integer, configs.Number:
		one := schema{"type": string(s.Type)}
		if s.Least != nil {
			one["minimum"] = *s.Least
		}
		if s.Most != nil {
			one["maximum"] = *s.Most
		}
		return orReplaced(one)
	case configs.Size, configs.Span: // or a plain number
		return orReplaced(schema{"type": []string{"string", "integer"}, "pattern": s.Pattern})
	case configs.List:
		return schema{"type": []string{"array", "null"}, "items": w.items(path, s)}
	case configs.Mapping:
		one := w.mapping(path, s)
		if len(s.OneOf) > 0 {
			return schema{"anyOf": []any{schema{"enum": s.OneOf}, one}}
		}
		if !strings.HasSuffix(path, "]") { // an item that is nothing is a mistake
			one["type"] = []string{"object", "null"}
		}
		return one
	}
	return schema{}
}

// orReplaced is a value that may be nothing, sealed, or the environment's.
func orReplaced(one schema) schema {
	return schema{"anyOf": []any{one, schema{"type": "null"}, schema{"$ref": "#/$defs/replaced"}}}
}

// items are what a list holds: one thing, or providers, whose keys are those of their drivers.
func (w writer) items(path string, s *configs.Shape) schema {
	if len(s.Items) == 1 {
		return w.value(path+"[]", s.Items[0])
	}
	is := func(driver string) schema {
		return schema{"properties": schema{"driver": schema{"const": driver}}, "required": []string{"driver"}}
	}
	unnamed := schema{
		"not":        schema{"required": []string{"driver"}},
		"properties": schema{"name": schema{"not": schema{"type": "string", "pattern": "^fake"}}},
	}
	unsaid := schema{
		"not":        schema{"required": []string{"driver"}},
		"properties": schema{"name": schema{"type": "string", "pattern": "^fake"}}, "required": []string{"name"},
	}
	var cases []any
	for _, item := range s.Items {
		when := []any{is(item.Driver)}
		switch item.Driver {
		case configs.DriverOpenStack:
			when = append(when, unnamed)
		case configs.DriverFake: // Nodepool makes those fake ones whose name begins so
			when = append(when, unsaid)
		}
		cases = append(cases, schema{"if": schema{"anyOf": when}, "then": w.value(path+"["+item.Driver+"]", item)})
	}
	return schema{"type": "object", "allOf": cases}
}

// mapping is the schema of a mapping.
func (w writer) mapping(path string, s *configs.Shape) schema {
	one := schema{"type": "object"}
	if len(s.Fields) == 0 && s.Values != nil {
		one["additionalProperties"] = w.value(path, s.Values)
		return one
	}
	one["additionalProperties"] = false
	if s.Values != nil {
		one["additionalProperties"] = w.value(path, s.Values)
	}
	properties := schema{}
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		properties[name] = w.described(at, s, name)
	}
	one["properties"] = properties
	if len(s.Required) > 0 {
		one["required"] = s.Required
	}
	return one
}

// described is the schema of a key with what an editor shows of it.
func (w writer) described(at string, s *configs.Shape, name string) schema {
	field := s.Fields[name]
	one := w.value(at, field)
	for _, table := range w.book.tables {
		for _, k := range table.keys {
			if k.path != at {
				continue
			}
			words := []string{k.text}
			if k.shape.Unit != "" && k.text != k.shape.Unit {
				words = append(words, "("+k.shape.Unit+")")
			}
			if preset := strings.Trim(k.preset(), "`"); preset != "" && preset != "needed" {
				words = append(words, "["+preset+"]")
			}
			if k.ours || w.ours {
				words = append(words, "Poolkeeper's own.")
			}
			if text := strings.TrimSpace(strings.Join(words, " ")); text != "" {
				one["description"] = text
			}
		}
	}
	if field.Deprecated != "" {
		one["deprecated"] = true
	}
	return one
}

// schemas are the schemas of the files by their name in docs/reference.
func schemas(t *testing.T) map[string]schema {
	t.Helper()
	files := configs.Describe()
	return map[string]schema{
		"nodepool.schema.json": writer{book: mainBook(t)}.document("Configuration of Poolkeeper, in Nodepool's format", files.Main),
		"secure.schema.json":   writer{book: bookOf(t, files.Secure, nil, "secure.yaml")}.document("Secure file of Poolkeeper (-s)", files.Secure),
		"host.schema.json":     writer{book: bookOf(t, files.Host, nil, "host.yaml", "openstack.yaml"), ours: true}.document("Host file of Poolkeeper (--host-config)", files.Host),
	}
}

// The schemas for editors are made of the decoders, too.
func TestSchemas(t *testing.T) {
	for name, one := range schemas(t) {
		var text bytes.Buffer
		out := json.NewEncoder(&text)
		out.SetEscapeHTML(false)
		out.SetIndent("", " ")
		if err := out.Encode(one); err != nil {
			t.Fatal(err)
		}
		same(t, "docs/reference/"+name, text.String())
	}
}

// compiled is a schema of docs/reference, as an editor reads it.
func compiled(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	one, err := compiler.Compile(filepath.Join(pages, name))
	if err != nil {
		t.Fatal(err)
	}
	return one
}

// judge holds a file against a schema.
func judge(t *testing.T, by *jsonschema.Schema, text []byte) error {
	t.Helper()
	var said any
	if err := yaml.Unmarshal(text, &said); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return by.Validate(instance)
}

// What config-validate takes, an editor does not mark: catches a schema that is narrower than the
// decoders.
func TestSchemaTakesGoodFiles(t *testing.T) {
	main := compiled(t, "nodepool.schema.json")
	var files []string
	for _, pattern := range []string{"openstack.yaml", "poolkeeper.yaml", "kubernetes.yaml", "metastatic.yaml", "aws.yaml", "loadtest.yaml", "testdata/*.good.yml", "testdata/*.lint.yml"} {
		found, err := filepath.Glob(filepath.Join(samples, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "twice.lint.yml") {
			continue // yaml.v3 refuses what comes twice
		}
		if err := judge(t, main, content(t, file)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, name := range []string{"secure", "host"} {
		if err := judge(t, compiled(t, name+".schema.json"), content(t, filepath.Join(samples, name+".yaml"))); err != nil {
			t.Errorf("%s.yaml: %v", name, err)
		}
	}
}

func content(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Mistakes that an editor is to mark: a key that is misspelt at any depth, a wrong type, a word that
// is none, a number beyond its bounds, a name that is missing.
func TestSchemaRefuses(t *testing.T) {
	main := compiled(t, "nodepool.schema.json")
	for mistake, text := range map[string]string{
		"top":      "image-dir: /x",
		"image":    "diskimages: [{name: a, formts: [raw]}]",
		"canary":   "diskimages: [{name: a, canary: {shares: 5%}}]",
		"share":    "diskimages: [{name: a, canary: {share: half}}]",
		"check":    "diskimages: [{name: a, validate: {checks: [sh]}}]",
		"label":    "providers: [{name: a, cloud: c, pools: [{name: p, labels: [{name: l, flavour: x}]}]}]",
		"driver":   "providers: [{name: a, driver: static, cloud: c}]",
		"fake":     "providers: [{name: fake-1, fake: {boot_delay: 1}}]",
		"number":   "labels: [{name: a, min-ready: many}]",
		"bound":    "diskimages: [{name: a, keep-builds: 0}]",
		"word":     "pool-order: fillup",
		"nameless": "labels: [{min-ready: 1}]",
		"list":     "labels: {name: a}",
		"item":     "labels: [null]",
	} {
		if err := judge(t, main, []byte(text)); err == nil {
			t.Errorf("%s: the schema takes %q", mistake, text)
		}
	}
	for _, right := range []string{
		"max-concurrent-builds: '%(NODEPOOL_N)'", "build-log-retention: null", "providers: [{name: a, driver: azure, whatever: 1}]",
		"diskimages: [{name: a, pause: yes, release: 22.04}]", "tenant-resource-limits: [{tenant-name: a, max-cores: 4, gpus: 1}]",
	} {
		if err := judge(t, main, []byte(right)); err != nil {
			t.Errorf("%q: %v", right, err)
		}
	}
}
