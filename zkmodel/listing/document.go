package listing

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Version is that of our documents. Keys are added to a version; what changes or goes makes
// a new one.
const Version = "v1"

// WriteDocument writes a document of ours: its version and kind, the time, and the rows as
// objects, a line each. Times are RFC 3339, durations seconds.
func (t *Table) WriteDocument(w io.Writer, now time.Time) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, `{"version": %q, "kind": %q, "time": %q, "items": [`, Version, t.kind, now.UTC().Format(time.RFC3339))
	for i, row := range t.rows {
		out.WriteString(separator(i, ","))
		out.WriteString("\n ")
		if err := t.item(out, row); err != nil {
			return err
		}
	}
	out.WriteString("]}\n")
	return out.Flush()
}

// item writes a row as an object of ours.
func (t *Table) item(out *bufio.Writer, row []cell) error {
	out.WriteString("{")
	for i, c := range row {
		value := c.own
		if value == nil {
			value = c.value
		}
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		key := t.columns[i].own
		if key == "" {
			key = t.columns[i].key
		}
		out.WriteString(separator(i, ", ") + `"` + key + `": `)
		out.Write(text)
	}
	out.WriteString("}")
	return nil
}

// WriteYAML writes the same document as YAML.
func (t *Table) WriteYAML(w io.Writer, now time.Time) error {
	var text bytes.Buffer
	if err := t.WriteDocument(&text, now); err != nil {
		return err
	}
	return YAML(w, text.Bytes())
}

// YAML writes a document of JSON as YAML, its keys in their order.
func YAML(w io.Writer, text []byte) error {
	var document yaml.Node // JSON is YAML, in another style
	if err := yaml.Unmarshal(text, &document); err != nil {
		return err
	}
	plain(&document)
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(&document); err != nil {
		return err
	}
	return e.Close()
}

// plain takes JSON's style from a document.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, sub := range n.Content {
		plain(sub)
	}
}

// WriteNames writes what each row tells of, a line each, as commands take it. A row
// that tells of the same as one before is left out.
func (t *Table) WriteNames(w io.Writer) error {
	out := bufio.NewWriter(w)
	told := map[string]bool{}
	for _, row := range t.rows {
		if name := t.name(row); name != "" && !told[name] {
			told[name] = true
			out.WriteString(name + "\n")
		}
	}
	return out.Flush()
}

// name is that of what a row tells of.
func (t *Table) name(row []cell) string {
	if t.named != nil {
		return strings.TrimSpace(t.named(row))
	}
	return row[0].text
}
