package listing

import (
	"encoding/json"
	"strings"

	"poolkeeper/zkmodel"
)

// python writes a foreign value as Nodepool's tables do: a string as it is,
// anything else in Python's spelling, the order of keys kept.
func python(v zkmodel.Value) string {
	raw, err := v.MarshalJSON()
	if err != nil || raw[0] == '"' {
		return v.Text()
	}
	var out strings.Builder
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if err := writePython(&out, dec); err != nil {
		return v.Text()
	}
	return out.String()
}

// writePython copies the decoder's next value.
func writePython(out *strings.Builder, dec *json.Decoder) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Delim:
		return writeContainer(out, dec, token)
	case string:
		out.WriteString(quote(token))
	case json.Number:
		out.WriteString(token.String())
	case bool:
		out.WriteString(flag(token).text)
	case nil:
		out.WriteString("None")
	}
	return nil
}

// writeContainer copies a list or an object whose opening was read.
func writeContainer(out *strings.Builder, dec *json.Decoder, open json.Delim) error {
	out.WriteString(open.String())
	for i := 0; dec.More(); i++ {
		out.WriteString(separator(i, ", "))
		if open == '{' {
			if err := writePython(out, dec); err != nil {
				return err
			}
			out.WriteString(": ")
		}
		if err := writePython(out, dec); err != nil {
			return err
		}
	}
	end, err := dec.Token()
	if err != nil {
		return err
	}
	out.WriteString(end.(json.Delim).String())
	return nil
}

// quote is Python's repr of a string: single quotes unless only those are in it.
func quote(s string) string {
	q := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = `"`
	}
	escape := strings.NewReplacer(`\`, `\\`, q, `\`+q, "\n", `\n`, "\r", `\r`, "\t", `\t`)
	return q + escape.Replace(s) + q
}
