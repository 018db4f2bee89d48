// Command sbom prints the software bill of materials of a Go program: what its build
// information says, as CycloneDX 1.6, checked against the specification's own schema.
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// specification is the version of CycloneDX that is written.
const specification = cdx.SpecVersion1_6

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// run writes the bill of the program args[0], whose version is args[1]; args[2] is the folder
// with the schemas. Nothing is written that they refuse.
func run(out io.Writer, args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: sbom PROGRAM VERSION SCHEMAS")
	}
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("read SOURCE_DATE_EPOCH: %w", err)
	}
	content, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("read the build information of %s: %w", args[0], err)
	}
	var text bytes.Buffer
	encoder := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.EncodeVersion(bill(info, filepath.Base(args[0]), args[1], sha256.Sum256(content), time.Unix(epoch, 0)), specification); err != nil {
		return fmt.Errorf("encode the bill: %w", err)
	}
	if err := check(text.Bytes(), args[2]); err != nil {
		return err
	}
	_, err = out.Write(text.Bytes())
	return err
}

// bill is the same for the same program: its number is made of the program's sum.
func bill(info *debug.BuildInfo, name, version string, sum [32]byte, made time.Time) *cdx.BOM {
	number := append([]byte(nil), sum[:16]...)
	number[6], number[8] = number[6]&0x0f|0x80, number[8]&0x3f|0x80 // RFC 9562: version 8, its maker's own
	program := cdx.Component{
		BOMRef: "pkg:golang/" + info.Main.Path + "@" + version, Type: cdx.ComponentTypeApplication, Name: name, Version: version,
		PackageURL: "pkg:golang/" + info.Main.Path + "@" + version,
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
	}
	library := func(path, version string) cdx.Component {
		url := "pkg:golang/" + path + "@" + version
		return cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url, Scope: cdx.ScopeRequired}
	}
	parts := []cdx.Component{library("std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		part := library(module.Path, module.Version)
		// The sum of go.sum: of a module's folder, so it is none of CycloneDX's hashes.
		part.Properties = &[]cdx.Property{{Name: "go:sum", Value: module.Sum}}
		parts = append(parts, part)
	}
	uses := []string{}
	for _, part := range parts {
		uses = append(uses, part.BOMRef)
	}
	b := cdx.NewBOM()
	b.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", number[:4], number[4:6], number[6:8], number[8:10], number[10:])
	b.Metadata = &cdx.Metadata{Timestamp: made.UTC().Format(time.RFC3339), Component: &program}
	b.Components = &parts
	b.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &uses}}
	return b
}

// check holds a bill against the specification's schemas, which lie in a folder; they refer to
// each other by their addresses, of which nothing is fetched.
func check(text []byte, folder string) error {
	compiler := jsonschema.NewCompiler()
	const base = "http://cyclonedx.org/schema/"
	for address, file := range map[string]string{
		"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		f, err := os.Open(filepath.Join(folder, file))
		if err != nil {
			return fmt.Errorf("read a schema: %w", err)
		}
		schema, err := jsonschema.UnmarshalJSON(f)
		_ = f.Close() // it was read
		if err != nil {
			return fmt.Errorf("read schema %s: %w", file, err)
		}
		if err := compiler.AddResource(base+address, schema); err != nil {
			return fmt.Errorf("take schema %s: %w", file, err)
		}
	}
	compiler.AssertFormat()
	schema, err := compiler.Compile(base + "bom-1.6.schema.json")
	if err != nil {
		return fmt.Errorf("compile the schema: %w", err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("read the bill again: %w", err)
	}
	if err := schema.Validate(document); err != nil {
		return fmt.Errorf("check the bill: %w", err)
	}
	return nil
}
