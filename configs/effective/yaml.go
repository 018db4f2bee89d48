package effective

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// YAML says how a configuration is written.
type YAML struct {
	Defaults bool // also what no file says
	Origins  bool // where each value comes from, as a remark
}

// WriteYAML writes what was selected as a configuration. Without secrets it means what it was made of.
// What the configuration itself cannot say, as it is another file's, is a remark.
func (t *Tree) WriteYAML(w io.Writer, how YAML) error {
	out := &writer{Writer: bufio.NewWriter(w), how: how}
	out.fields(t.Root, "", "")
	return out.Flush()
}

// writer writes YAML in blocks.
type writer struct {
	*bufio.Writer
	how YAML
}

// wanted reports whether a value is written.
func (w *writer) wanted(v *Value) bool { return v.wanted(w.how.Defaults) }

// fields writes the keys of a mapping. The first line begins with lead, the others with margin.
func (w *writer) fields(v *Value, lead, margin string) {
	fields := slices.DeleteFunc(slices.Clone(v.Fields), func(f *Value) bool { return !w.wanted(f) })
	// Remarks come last: the first line of an item must be one of the item.
	slices.SortStableFunc(fields, func(a, b *Value) int { return order(a.Beside) - order(b.Beside) })
	for _, f := range fields {
		below := margin
		if f.Beside && !strings.Contains(margin, "# ") {
			lead, below = margin+"# ", margin+"# "
		}
		w.WriteString(lead + scalarText(f.Key) + ":")
		w.value(f, below)
		lead = margin
	}
}

func order(last bool) int {
	if last {
		return 1
	}
	return 0
}

// value writes what stands behind a key or a dash, and the end of the line.
func (w *writer) value(v *Value, margin string) {
	items := slices.DeleteFunc(slices.Clone(v.Items), func(i *Value) bool { return !w.wanted(i) && !v.asked })
	fields := slices.ContainsFunc(v.Fields, w.wanted)
	switch {
	case v.Kind == yaml.MappingNode && fields:
		w.WriteString("\n")
		w.fields(v, margin+"  ", margin+"  ")
	case v.Kind == yaml.MappingNode:
		w.line(" {}", v)
	case v.Kind == yaml.SequenceNode && len(items) > 0:
		w.WriteString("\n")
		for _, i := range items {
			w.item(i, margin+"  ")
		}
	case v.Kind == yaml.SequenceNode:
		w.line(" []", v)
	default:
		w.line(" "+scalarText(v.Scalar), v)
	}
}

// item writes an item of a list.
func (w *writer) item(i *Value, margin string) {
	if i.Beside && !strings.Contains(margin, "# ") {
		margin += "# "
	}
	w.WriteString(margin + "-")
	if i.Kind == yaml.MappingNode && slices.ContainsFunc(i.Fields, w.wanted) {
		w.WriteString(" ")
		w.fields(i, "", margin+"  ")
		return
	}
	w.value(i, margin)
}

// line ends a line.
func (w *writer) line(text string, v *Value) {
	w.WriteString(text)
	if w.how.Origins {
		w.WriteString("  # " + visible(v.Origin.String()))
	}
	w.WriteString("\n")
}

// scalarText is a scalar as YAML has it, in one line.
func scalarText(scalar any) string {
	switch one := scalar.(type) {
	case nil:
		return "null"
	case float64:
		return strconv.FormatFloat(one, 'f', -1, 64)
	case string:
		var of any = one
		if strings.ContainsAny(one, "\n\r") || typed(one) {
			of = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: one, Style: yaml.DoubleQuotedStyle}
		}
		if out, err := yaml.Marshal(of); err == nil {
			return strings.TrimRight(string(out), "\n")
		}
	}
	return fmt.Sprint(scalar)
}

// typed tells a text that YAML 1.1 takes for something else, and yaml.v3 for text: 2:20, 0o7, y.
func typed(text string) bool {
	return text != "" && strings.Trim(text, "0123456789_:.+-eExXoO") == "" || len(text) == 1
}

// visible is text in one line of a remark.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}
