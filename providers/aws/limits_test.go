package aws

import "testing"

// A type that counts against the wrong quota makes launchers ask for what is refused, or leave
// alone what is free.
func TestQuotasOfTypes(t *testing.T) {
	for kind, want := range map[string][2]string{
		"t3.small":      {"L-1216C47A", "L-34B43A08"},
		"im4gn.large":   {"L-1216C47A", "L-34B43A08"},
		"is4gen.large":  {"L-1216C47A", "L-34B43A08"},
		"d3.xlarge":     {"L-1216C47A", "L-34B43A08"},
		"dl1.24xlarge":  {"L-6E869C2A", "L-85EED4F7"},
		"p3.2xlarge":    {"L-417A185B", "L-7212CCBC"},
		"p5.48xlarge":   {"L-417A185B", "L-C4BD4855"},
		"g4dn.xlarge":   {"L-DB2E81BA", "L-3819A6DF"},
		"gr6.4xlarge":   {"L-DB2E81BA", "L-3819A6DF"},
		"trn1.2xlarge":  {"L-2C3B7624", "L-6B0D517C"},
		"inf2.xlarge":   {"L-1945791B", "L-B5D1601B"},
		"hpc6a.48":      {"L-F7808C92", ""},
		"u-6tb1.metal":  {"L-43DA4232", ""},
		"u7i-12tb.224x": {"L-43DA4232", ""},
		"x1e.xlarge":    {"L-7295265B", "L-E3A00192"},
		"mac1.metal":    {"", ""},
		"nothing":       {"", ""},
		"":              {"", ""},
	} {
		if got := [2]string{vCPUCode(kind, false), vCPUCode(kind, true)}; got != want {
			t.Errorf("%q counts against %q, want %q", kind, got, want)
		}
	}
}
