package configs

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkLoad reads a site of 20 images and 50 providers with 20 labels each.
func BenchmarkLoad(b *testing.B) {
	var text strings.Builder
	text.WriteString("zookeeper-servers: [{host: localhost}]\ndiskimages:\n  - {name: base, abstract: true}\n")
	for i := range 20 {
		fmt.Fprintf(&text, "  - {name: image%d, parent: base, elements: [vm], env-vars: {A: 1, B: 2}}\n", i)
	}
	text.WriteString("labels:\n")
	for i := range 20 {
		fmt.Fprintf(&text, "  - {name: label%d}\n", i)
	}
	text.WriteString("providers:\n")
	for p := range 50 {
		fmt.Fprintf(&text, "  - name: cloud%d\n    cloud: x\n    diskimages:\n", p)
		for i := range 20 {
			fmt.Fprintf(&text, "      - {name: image%d, config-drive: true}\n", i)
		}
		text.WriteString("    pools:\n      - name: main\n        labels:\n")
		for i := range 20 {
			fmt.Fprintf(&text, "          - {name: label%d, diskimage: image%d, min-ram: 8192}\n", i, i)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		l := newLoader(Options{Strict: true, Env: alone()})
		l.decodeMain("bench.yaml", []byte(text.String()))
		l.finish()
		if err := l.found.err(); err != nil {
			b.Fatal(err)
		}
	}
}
