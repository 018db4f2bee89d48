package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// shape is what a command prints.
type shape string

const (
	aListing   shape = "a listing (view.Flags): -o table|wide|json|json-v1|yaml|name, --detail, --sort"
	someTables shape = "tables beside something else (view.Forms): -o table|wide|json|json-v1|yaml|name, --detail"
	aReport    shape = "a report in lines (view.Report): -o table|json|json-v1|yaml"
	someLines  shape = "lines, one behind the other: -o table|json|json-v1|yaml|name"
	aText      shape = "a text, a name or a number that is what was asked for: no -o"
	itActs     shape = "nothing but what it has done: no -o"
	aDaemon    shape = "a log: no -o"
)

// formsOf are the values of -o that a shape has.
var formsOf = map[shape]string{
	aListing: "table,wide,json,json-v1,yaml,name", someTables: "table,wide,json,json-v1,yaml,name",
	aReport: "table,json,json-v1,yaml", someLines: "table,json,json-v1,yaml,name",
}

// shapes is what each command prints, by its whole name. A new command is added here: one that shows what there is, is a listing
// or a report, and embeds those flags of package view.
var shapes = map[shape][]string{
	aListing: {
		"list", "request-list", "image-list", "dib-image-list", "image-status", "alien-image-list", "wave list", "daemon list", "config history", "config who", "secret list",
		"daemon who", "daemon reload", "daemon log-level", "daemon pause", "daemon resume", "daemon drain", "daemon stop", "daemon dump", // what each daemon answers
	},
	someTables: {"info", "wave show", "wave create"},
	aReport:    {"status", "doctor", "config-show", "explain", "request-explain", "node-explain"},
	someLines:  {"events"},
	aText:      {"build-log", "config diff", "config pull", "config keygen", "secret keygen", "ltime", "completion", "man", "token create", "version", "config-validate"},
	itActs: {
		"image-build", "image-delete", "dib-image-delete", "image-pause", "image-unpause", "image-rollback", "image-reject", "image-promote", "image-build-cancel",
		"wave hold", "wave release", "wave priority", "wave cancel", "wave retry", "wave delete", "request", "request-delete", "hold", "node-delete",
		"provider-pause", "provider-drain", "provider-resume", "ssh", "erase", "export-image-data", "import-image-data", "config push", "config rollback", "config-accept",
		"secret set", "secret rotate", "secret reseal", "elements-install", "build-guard", "backup", "restore",
	},
	aDaemon: {"builder", "launcher", "dev"},
}

// filtersOf are the filters of listings beside none; what is not here says nothing of a listing.
var filtersOf = map[string]string{
	"list": "state provider label", "request-list": "state label", "image-list": "state provider image", "dib-image-list": "state image", "image-status": "image",
	"alien-image-list": "image", "wave list": "state", "daemon list": "state", "wave show": "state",
}

// unwatched are listings, tables and reports without --watch, and why.
var unwatched = map[string]string{
	"alien-image-list": "clouds tell of no change", "secret list": "files", "config-show": "files", "doctor": "it looks at a host and at clouds",
	"config history": "config push --wait waits for what comes of a version", "config who": "config push --wait does, and status --watch shows who is behind",
	"explain": "the builder's log tells what it does", "request-explain": "request --wait waits", "node-explain": "list --watch", "info": "list and image-list --provider --watch",
	"wave create": "--wait", "daemon who": "an answer", "daemon reload": "an answer", "daemon log-level": "an answer", "daemon pause": "an answer", "daemon resume": "an answer",
	"daemon drain": "--wait", "daemon stop": "--wait", "daemon dump": "an answer",
}

// Each command has the forms of what it prints: catches a new listing without -o, one whose forms differ from the others', and a
// command that nobody has thought of.
func TestFormsOfCommands(t *testing.T) {
	of := map[string]shape{}
	for one, names := range shapes {
		for _, name := range names {
			of[name] = one
		}
	}
	for name, command := range commands(t) {
		want, told := of[name]
		if !told {
			t.Errorf("%s is a new command: say in forms_test.go which of these it prints:\n  %s\n  %s\n  %s\n  %s", name, aListing, aReport, aText, itActs)
			continue
		}
		delete(of, name)
		flags := map[string]*kong.Flag{}
		for _, f := range command.Flags {
			flags[f.Name] = f
		}
		forms := ""
		if o := flags["output"]; o != nil {
			forms = o.Enum
		}
		if forms != formsOf[want] {
			t.Errorf("%s has -o %q; it prints %s", name, forms, want)
		}
		if detail := flags["detail"] != nil; detail != (want == aListing || want == someTables) {
			t.Errorf("%s: --detail is %t; it prints %s", name, detail, want)
		}
		if sort := flags["sort"] != nil; sort != (want == aListing) {
			t.Errorf("%s: --sort is %t; it prints %s", name, sort, want)
		}
		if shows := want == aListing || want == someTables || want == aReport; shows {
			if why := unwatched[name]; (why == "") != (flags["watch"] != nil) {
				t.Errorf("%s: --watch is %t; why there is none: %q", name, flags["watch"] != nil, why)
			}
		}
		if want != aListing && want != someTables {
			continue
		}
		for _, by := range []string{"state", "provider", "label", "image"} {
			if wanted := slices.Contains(strings.Fields(filtersOf[name]), by); wanted != (flags[by] != nil) {
				t.Errorf("%s: --%s is %t, want %t", name, by, flags[by] != nil, wanted)
			}
		}
	}
	for name := range of {
		t.Errorf("%s is in forms_test.go, and is no command", name)
	}
}

// commands are those that can be given, by their whole names.
func commands(t *testing.T) map[string]*kong.Node {
	t.Helper()
	parser, err := kong.New(&cli{}, kong.Name("poolkeeper"), kong.Vars{"version": ""}, kong.ExplicitGroups(groups))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*kong.Node{}
	for _, leaf := range parser.Model.Leaves(false) {
		words := strings.Fields(leaf.FullPath())[1:]
		words = slices.DeleteFunc(words, func(word string) bool { return strings.ContainsAny(word, "<[(") })
		all[strings.Join(words, " ")] = leaf
	}
	return all
}
