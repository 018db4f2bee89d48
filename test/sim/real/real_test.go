package real

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the module's, seen from here.
const root = "../../.."

// worlds are the packages that simulate; daemons what production runs.
var (
	worlds  = []string{"./test/sim", "./test/sim/site", "./test/sim/builders"}
	daemons = "./cmd/poolkeeper/agent"
)

// seams are the fields by which worlds hand the real code something of their own, and what that is.
// What is "" is a value as production has it.
var seams = map[string]string{
	"recipe.Config.Dial":      "the network: a model of ZooKeeper speaks its bytes over it",
	"recipe.Config.Clock":     "the host's clock, which stops and is set",
	"recipe.Config.Rand":      "what the order of servers is drawn from",
	"recipe.Config.Servers":   "",
	"recipe.Config.Timeout":   "",
	"recipe.Config.MaxPacket": "",
	"launcher.Deps.Open":      "providers",
	"launcher.Deps.Step":      "where a process may crash; as the crash matrices have it",
	"launcher.Deps.Deciding":  "told when a launcher decides, which takes no part in it",
	"launcher.Deps.Client":    "",
	"launcher.Deps.Hostname":  "",
	"launcher.Deps.FQDN":      "",
	"launcher.Deps.Version":   "",
	"launcher.Deps.Logger":    "",
	"builder.Deps.Open":       "providers",
	"builder.Deps.Host":       "disk-image-create with its guard",
	"builder.Deps.Step":       "where a process may crash; as the crash matrices have it",
	"builder.Deps.Client":     "",
	"builder.Deps.Hostname":   "",
	"builder.Deps.FQDN":       "",
	"builder.Deps.Version":    "",
	"builder.Deps.Logger":     "",
	"builder.Deps.Arch":       "",
	"builder.Deps.Environ":    "",
	"builder.Deps.Policy":     "",
}

// absent are the packages of the daemons that no world links, by the beginnings of their paths.
var absent = map[string]string{
	"poolkeeper/providers/":                "provider",
	"github.com/fsnotify/":                 "watching of files",
	"poolkeeper/configs/guard":             "watching of files",
	"poolkeeper/web":                       "HTTP",
	"github.com/prometheus/client_golang/": "HTTP",
	"poolkeeper/cmd/":                      "the command line",
	"github.com/coreos/go-systemd/":        "the command line",
	"poolkeeper/zkmodel/action":            "left out: what people do by commands and pages",
	"poolkeeper/zkmodel/figures":           "left out: what people do by commands and pages",
	"poolkeeper/zkmodel/lift":              "left out: what people do by commands and pages",
	"poolkeeper/zkmodel/manage":            "left out: what people do by commands and pages",
	"poolkeeper/zkmodel/overview":          "left out: what people do by commands and pages",
	"poolkeeper/zkmodel/fleet":             "left out: configurations that are pushed",
	"poolkeeper/zkmodel/event/":            "left out: sinks of events",
	"poolkeeper/zkmodel/history":           "left out: the history of a daemon",
}

// others are the files that stand in wasip1 for those which need Linux.
var others = map[string]string{
	"poolkeeper/builder/dib/other.go":          "the guard and the sweep of processes and mounts, which the world of builders replaces (builder.Deps.Host)",
	"poolkeeper/builder/disk/system_other.go":  "the room on a disk",
	"poolkeeper/builder/waves/group_other.go":  "the group of a hook's processes",
	"poolkeeper/configs/kit/nonblock_other.go": "pipes that are opened as files",
	"poolkeeper/configs/sealed/core_other.go":  "core dumps",
}

// Mistakes: a world hands the real code something of its own that nobody has listed.
func TestSeamsAreThoseThatAreListed(t *testing.T) {
	used := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, field := range fields(n) {
				used[field] = true
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "seam", slices.Sorted(maps.Keys(used)), seams, "recipe.Config.Chroot", "recipe.Config.Logger")
}

// fields are those that a literal of Config or Deps sets.
func fields(n ast.Node) (list []string) {
	literal, ok := n.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	of, ok := literal.Type.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	pkg, _ := of.X.(*ast.Ident)
	if pkg == nil || !slices.Contains([]string{"recipe.Config", "launcher.Deps", "builder.Deps"}, pkg.Name+"."+of.Sel.Name) {
		return nil
	}
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			list = append(list, pkg.Name+"."+of.Sel.Name+"."+pair.Key.(*ast.Ident).Name)
		}
	}
	return list
}

// Mistakes: a part of the daemons is in no simulation, and nobody has said why.
func TestPackagesThatAreLeftOutAreListed(t *testing.T) {
	if testing.Short() {
		t.Skip("asks go list")
	}
	linked := map[string]bool{}
	for _, path := range list(t, nil, "{{.ImportPath}}", append([]string{"-deps", "-test"}, worlds...)...) {
		path, _, _ = strings.Cut(path, " ")
		linked[path] = true
	}
	imports := map[string][]string{}
	for _, line := range list(t, nil, `{{.ImportPath}}={{join .Imports ","}}`, "-deps", daemons) {
		path, all, _ := strings.Cut(line, "=")
		imports[path] = strings.Split(all, ",")
	}
	// What is behind a package that is listed, is needed by it alone, or found another way.
	var left []string
	seen := map[string]bool{}
	for next := imports["poolkeeper"+strings.TrimPrefix(daemons, ".")]; len(next) > 0; {
		path := next[0]
		next = next[1:]
		if seen[path] || linked[path] || !strings.Contains(path, ".") && !strings.HasPrefix(path, "poolkeeper/") {
			continue
		}
		seen[path] = true
		prefixes := slices.Sorted(maps.Keys(absent))
		if at := slices.IndexFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(path+"/", prefix) }); at >= 0 {
			left = append(left, prefixes[at])
			continue
		}
		t.Errorf("%s is linked into daemons and into no world: say in absent what stands for it", path)
		next = append(slices.Clone(next), imports[path]...)
	}
	compare(t, "package", left, absent)
}

// Mistakes: a file stands for another in wasip1, and what is simulated there is not what runs.
func TestFilesOfWASIAreListed(t *testing.T) {
	if testing.Short() {
		t.Skip("asks go list")
	}
	files := func(env ...string) []string {
		return list(t, env, `{{if not .Standard}}{{$p := .ImportPath}}{{range .GoFiles}}{{$p}}/{{.}}{{"\n"}}{{end}}{{end}}`, append([]string{"-deps", "-test"}, worlds...)...)
	}
	native := files()
	var stand []string
	for _, file := range files("GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0") {
		if strings.HasPrefix(file, "poolkeeper/") && !strings.Contains(file, ".test/") && !slices.Contains(native, file) {
			stand = append(stand, file)
		}
	}
	compare(t, "file", stand, others)
}

// Mistakes: a library is another one than the daemons'.
func TestNoLibraryIsReplaced(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mod), "=>") {
		t.Error("go.mod replaces a module")
	}
	if _, err := os.Stat(filepath.Join(root, "go.work")); err == nil {
		t.Error("there is a go.work")
	}
}

// compare holds what is against what is listed; but is what may be there and is in no table.
func compare(t *testing.T, what string, found []string, listed map[string]string, but ...string) {
	t.Helper()
	for _, one := range found {
		if _, known := listed[one]; !known && !slices.Contains(but, one) {
			t.Errorf("%s %s stands in simulations for something real, and is not listed", what, one)
		}
	}
	for one := range listed {
		if !slices.Contains(found, one) {
			t.Errorf("%s %s is listed, and is replaced no more", what, one)
		}
	}
}

// list asks go list.
func list(t *testing.T, env []string, format string, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-f", format}, args...)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return strings.Fields(strings.ReplaceAll(string(out), " [", "["))
}
