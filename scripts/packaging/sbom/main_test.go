package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// schemas is the folder of the specification's schemas.
func schemas(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "schema")
}

// The bill of a program, this test, names what it is linked with, and is the same each time.
// Mistakes: times of the run, a random number, modules of go.mod that are not linked.
func TestBillOfThisProgram(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	us, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := run(out, []string{us, "v1.2.3", schemas(t)}); err != nil {
			t.Fatal(err)
		}
	}
	if first.String() != second.String() {
		t.Error("two bills of one program are not the same")
	}
	for _, want := range []string{"pkg:golang/std@1.", "pkg:golang/github.com/santhosh-tekuri/jsonschema/v6@v6.", `"2023-11-14T22:13:20Z"`} {
		if !strings.Contains(first.String(), want) {
			t.Errorf("no %s in %s", want, &first)
		}
	}
	if strings.Contains(first.String(), "nfpm") {
		t.Error("the bill names a module that is not linked")
	}
}

// The schema does refuse what it does not know: otherwise the check above shows nothing.
func TestASchemaRefuses(t *testing.T) {
	text, err := json.Marshal(map[string]any{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": []any{map[string]any{"name": "no type"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := check(text, schemas(t)); err == nil || !strings.Contains(err.Error(), "check the bill") {
		t.Errorf("check: %v", err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1")
	var out bytes.Buffer
	if err := run(&out, []string{"/bin/sh", "v1", schemas(t)}); err == nil || out.Len() > 0 {
		t.Errorf("a program without build information: %v, %q", err, &out)
	}
}
