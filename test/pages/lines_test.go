package pages

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const top = "../.."

// walked are the lines that TestWalk runs: a page, and how its lines begin; "" is
// every line.
var walked = map[string][]string{
	"README.md": {
		"apt-get ", "make demo", "scripts/", "make build", "sudo ", "test -e ", "bin/poolkeeper ", "poolkeeper -c nodepool.yaml ",
	},
	"docs/install.md": {"make build", "make install", "useradd ", "install -d ", "install -m 644 ", "install -m 640 -g poolkeeper secure.yaml ", "echo "},
}

// asInReadme are the lines of other pages that README.md shows, too, where a walk runs them; "" is
// every line.
var asInReadme = map[string]string{
	"docs/CONTRIBUTING.md": "sudo bin/poolkeeper dev",
	"docs/tutorial.md":     "",
}

// standIns are the lines that a bare root cannot run, or that others run already, and
// what stands in: a test that reads the page, or does the same.
var standIns = []struct{ page, line, why, instead string }{
	{"README.md", "make test", "it would run this test", ".ci/run"},
	{"README.md", "make test-aws", "it installs Amazon's clients", ".ci/run"},
	{"README.md", "make test-kubernetes", "it builds a cluster, and takes many minutes", ".ci/run"},
	{"README.md", "make test-openstack", "it takes a cloud, and many minutes", ".ci/run"},
	{"README.md", "poolkeeper explain debian-12", "it shows two clouds", "cmd/poolkeeper/readme_test.go"},
	{"docs/page.md", "poolkeeper ", "its daemon is the reader's", "cmd/poolkeeper/actions_page_test.go"},
	{"docs/page.md", "curl ", "its daemon is the reader's", "cmd/poolkeeper/actions_page_test.go"},
	{"docs/status.md", "poolkeeper -c nodepool.yaml status ", "its site is the reader's", "cmd/poolkeeper/testdata/script/status.txtar"},
	{"docs/listings.md", "poolkeeper -c nodepool.yaml ", "its site is the reader's", "cmd/poolkeeper/testdata/script/views.txtar"},
	{"docs/doctor.md", "poolkeeper -c nodepool.yaml doctor ", "its host is the reader's", "cmd/poolkeeper/testdata/script/doctor.txtar"},
	{"docs/daemons.md", "poolkeeper ", "its daemons are the reader's", "cmd/poolkeeper/testdata/script/daemon.txtar"},
	{"docs/configure.md", "poolkeeper config-accept nodepool.yaml", "it shows a mistake", "cmd/poolkeeper/testdata/script/guard.txtar"},
	{"docs/configure.md", "poolkeeper list", "it shows a broken file", "cmd/poolkeeper/testdata/script/last_good.txtar"},
	{"docs/configure.md", "poolkeeper -c nodepool.yaml -s secure.yaml config-validate", "it shows a mistake", "cmd/poolkeeper/testdata/script/config_validate.txtar"},
	{"docs/configure.md", "poolkeeper -c nodepool.yaml -s secure.yaml config-show diskimages.debian-12.env-vars", "its files are the reader's", "cmd/poolkeeper/testdata/script/config_show.txtar"},
	{"docs/secrets.md", "poolkeeper ", "its files and clouds are the reader's", "cmd/poolkeeper/testdata/script/secret.txtar"},
	{"docs/secrets.md", "install -m 600 ", "it takes root, and an account", "cmd/poolkeeper/testdata/script/secret.txtar"},
	{"docs/howto.md", "poolkeeper -c nodepool.yaml -s secure.yaml ", "its site is the reader's", "cmd/poolkeeper/howto_page_test.go"},
	{"docs/rollback.md", "poolkeeper ", "its images are the reader's", "cmd/poolkeeper/rollback_page_test.go"},
	{"docs/validation.md", "poolkeeper ", "its images are the reader's", "cmd/poolkeeper/validation_page_test.go"},
	{"docs/canary.md", "poolkeeper ", "its images are the reader's", "cmd/poolkeeper/canary_page_test.go"},
	{"docs/fleet-configuration.md", "poolkeeper ", "its key and hosts are the reader's", "cmd/poolkeeper/testdata/script/fleet.txtar"},
	{"docs/install.md", "poolkeeper ", "its folders are the host's", "cmd/poolkeeper/testdata/script/manual.txtar"},
	{"docs/releasing.md", "git tag vX.Y.Z", "its version is the reader's", "test/deb/release"},
	{"docs/releasing.md", "make release", "it takes a tag", "test/deb/release"},
	{"docs/upgrade.md", "poolkeeper -c nodepool.yaml backup site.backup", "its images are the reader's", "cmd/poolkeeper/testdata/script/restore.txtar"},
	{"docs/install.md", "make deb", "it makes what is installed there", "test/deb/run"},
	{"docs/install.md", "apt-get ", "it takes a systemd", "test/deb/steps"},
	{"docs/install.md", "install -m 640 -g poolkeeper nodepool.yaml ", "it comes behind the package", "test/deb/steps"},
	{"docs/install.md", "systemctl enable --now poolkeeper-builder poolkeeper-launcher", "it takes a systemd", "test/deb/steps"},
	{"docs/install.md", "systemctl ", "nothing runs systemd in a root: TestWalk runs what the unit starts", "cmd/poolkeeper/units_test.go"},
	{"docs/hosts.md", "test/hosts/run ", "it makes systems, and many minutes go by", ".ci/run"},
	{"docs/hosts.md", "POOLKEEPER_ROOT=", "it is this test", "test/pages/walk_test.go"},
	{"docs/testing.md", "scripts/reproduce ", "it takes the history, and a build of an old tree", "test/docs/guarantees_test.go"},
	{"docs/events.md", "poolkeeper ", "its image is the reader's", "cmd/poolkeeper/events_test.go"},
	{"docs/hooks.md", "body=", "its daemons run", "cmd/poolkeeper/hooks_test.go"},
	{"docs/hooks.md", "sum=", "its daemons run", "cmd/poolkeeper/hooks_test.go"},
	{"docs/hooks.md", "curl ", "its daemons run", "cmd/poolkeeper/hooks_test.go"},
	{"docs/hooks.md", "poolkeeper -c nodepool.yaml ", "its daemons run", "cmd/poolkeeper/hooks_test.go"},
	{"docs/waves.md", "poolkeeper -c nodepool.yaml ", "its images are the reader's", "cmd/poolkeeper/testdata/script/wave.txtar"},
	{"docs/backup.md", "poolkeeper -c nodepool.yaml backup site.backup", "its images are the reader's", "cmd/poolkeeper/testdata/script/restore.txtar"},
	{"docs/backup.md", "poolkeeper -c nodepool.yaml restore ", "its images are the reader's", "cmd/poolkeeper/testdata/script/restore.txtar"},
	{"docs/backup.md", "poolkeeper -c nodepool.yaml export-image-data images.json", "its images are the reader's", "cmd/poolkeeper/testdata/script/backup.txtar"},
	{"docs/backup.md", "poolkeeper -c nodepool.yaml import-image-data ", "its images are the reader's", "cmd/poolkeeper/testdata/script/backup.txtar"},
	{"docs/maintenance.md", "poolkeeper provider-pause ", "its cloud is the reader's", "cmd/poolkeeper/testdata/script/provider.txtar"},
	{"docs/maintenance.md", "poolkeeper provider-drain ", "its cloud is the reader's", "cmd/poolkeeper/testdata/script/provider.txtar"},
	{"docs/maintenance.md", "poolkeeper provider-resume ", "its cloud is the reader's", "cmd/poolkeeper/testdata/script/provider.txtar"},
	{"docs/maintenance.md", "poolkeeper image-pause ", "its image is the reader's", "cmd/poolkeeper/testdata/script/images.txtar"},
	{"docs/maintenance.md", "poolkeeper wave hold ", "its waves are the reader's", "cmd/poolkeeper/testdata/script/wave.txtar"},
	{"docs/maintenance.md", "poolkeeper hold ", "its node is the reader's", "cmd/poolkeeper/testdata/script/nodes.txtar"},
	{"docs/maintenance.md", "poolkeeper daemon pause ", "its host is the reader's", "cmd/poolkeeper/testdata/script/daemon.txtar"},
	{"docs/launcher.md", "poolkeeper request debian-12 --wait", "its label is the reader's", "cmd/poolkeeper/testdata/script/launcher.txtar"},
	{"docs/launcher.md", "poolkeeper request debian-12 --hold ", "its label is the reader's", "test/e2e/person_test.go"},
	{"docs/launcher.md", "poolkeeper ssh ", "its node is the reader's", "test/e2e/person_test.go"},
	{"docs/launcher.md", "poolkeeper hold ", "its node is the reader's", "cmd/poolkeeper/testdata/script/nodes.txtar"},
	{"docs/launcher.md", "poolkeeper node-delete ", "its node is the reader's", "test/e2e/person_test.go"},
	{"docs/launcher.md", "poolkeeper request-delete ", "its request is the reader's", "cmd/poolkeeper/testdata/script/launcher.txtar"},
}

// standInConfigurations are those that name a cloud, a driver that is added first, or a
// password that is set afterwards, and the tests that use them.
var standInConfigurations = map[string]string{
	"docs/openstack.md":    "TestOpenStackPage",
	"docs/kubernetes.md":   "TestSiteOfSharedNamespace",
	"docs/metastatic.md":   "TestMetastaticPage",
	"docs/local.md":        "TestLocalPage",
	"docs/architecture.md": "TestANewDriver",
	"docs/secrets.md":      "TestMergedCloudsOfThePage",
	"docs/waves.md":        "TestScheduleOfThePage",
	"docs/validation.md":   "TestValidationPage",
	"docs/events.md":       "TestEventsPage",
	"docs/hooks.md":        "TestHooksPage",
	"docs/canary.md":       "TestCanaryPage",
	"docs/howto.md":        "TestHowToPage",
	"docs/page.md":         "TestActionsPage",
}

// allBlocks are those of README.md and of all pages, with paths from the top.
func allBlocks(t *testing.T) []Block {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(top, "docs/*.md"))
	if err != nil || len(pages) < 5 {
		t.Fatalf("pages %v: %v", pages, err)
	}
	var all []Block
	for _, page := range append(pages, filepath.Join(top, "README.md")) {
		blocks, err := Read(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			b.Page = strings.TrimPrefix(b.Page, top+"/")
			all = append(all, b)
		}
	}
	return all
}

// Every line and every configuration that a page shows is run by a walk, or something
// stands in for it: a new one has to be put into a list.
func TestEveryLineIsRunOrStoodInFor(t *testing.T) {
	used := map[int]bool{}
	for _, b := range allBlocks(t) {
		for _, c := range b.Commands() {
			line := c.Bare()
			runs := slices.ContainsFunc(walked[c.Page], func(beginning string) bool { return strings.HasPrefix(line, beginning) })
			for _, beginning := range runHere {
				runs = runs || slices.Contains(pagesRunHere, c.Page) && strings.HasPrefix(line, strings.TrimPrefix(beginning, "!"))
			}
			if like, given := asInReadme[c.Page]; given && (like == line || like == "") {
				runs = runs || slices.ContainsFunc(commandsOf(t, "README.md"), func(r Command) bool { return r.Text == c.Text })
			}
			stood := false
			for i, s := range standIns {
				if s.page == c.Page && (line == strings.TrimSpace(s.line) || strings.ContainsAny(s.line[len(s.line)-1:], " =") && strings.HasPrefix(line, s.line)) {
					stood, used[i] = true, true
					if text, err := os.ReadFile(filepath.Join(top, s.instead)); err != nil || !does(string(text), c.Page, line) {
						t.Errorf("%s: %s does not stand in: %v", c, s.instead, err)
					}
				}
			}
			if runs == stood {
				t.Errorf("%s: run by a walk %t, stood in for %t", c, runs, stood)
			}
		}
		if b.Lang == "yaml" && b.Page != "README.md" && standInConfigurations[b.Page] == "" {
			t.Errorf("%s:%d: nothing uses this configuration", b.Page, b.Line)
		}
	}
	for i, s := range standIns {
		if !used[i] {
			t.Errorf("%s: no line %q any more", s.page, s.line)
		}
	}
}

// does tells whether what stands in for a line of a page reads that page, or has the line, or one of the same
// command with the same flags: its names and ids are the reader's.
func does(instead, page, line string) bool {
	if strings.Contains(instead, filepath.Base(page)) {
		return true
	}
	line = strings.TrimPrefix(strings.TrimPrefix(line, "poolkeeper "), "-c nodepool.yaml ")
	words := strings.Fields(line)
	for other := range strings.Lines(instead) {
		if strings.Contains(other, line) {
			return true
		}
		has := true
		for n, word := range words {
			if word, _, _ = strings.Cut(word, "="); n == 0 || strings.HasPrefix(word, "-") {
				has = has && strings.Contains(other, word)
			}
		}
		if has {
			return true
		}
	}
	return false
}

// A stand-in of another file, or that lacks a flag, is found out.
func TestDoes(t *testing.T) {
	const script = "exec poolkeeper -c nodepool.yaml hold 0000000007 --for 2h --reason 'odd'\n"
	for line, want := range map[string]bool{
		"poolkeeper hold 0000000042 --for 8h --reason 'flaky test'": true, "poolkeeper hold 0000000042 --until 8h": false, "poolkeeper holt 0000000042": false,
	} {
		if got := does(script, "docs/maintenance.md", line); got != want {
			t.Errorf("%s: %t, want %t", line, got, want)
		}
	}
}
