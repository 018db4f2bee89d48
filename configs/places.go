package configs

import (
	"cmp"
	"slices"
	"strings"
)

// Item names an item of a list in a key: providers[ovh].
func Item(list, name string) string { return list + "[" + shown(name) + "]" }

// place notes where a key stands in the main file.
func (l *loader) place(v value) {
	if l.cfg.places != nil && v.src.file == l.cfg.Path {
		l.cfg.places[v.at.String()] = cmp.Or(v.line, v.node.Line)
	}
}

// LineOf returns the line of a key of a file that was read with Options.Places. If the file does not have the key,
// LineOf returns the line of the nearest section around it, 0 if there is none.
func (c *Config) LineOf(key string) int {
	for key != "" && c.places[key] == 0 {
		end := "."
		if strings.HasSuffix(key, "]") {
			end = "["
		}
		key = key[:max(0, strings.LastIndex(key, end))]
	}
	return c.places[key]
}

// Finding is a remark on what a file says that was read with Options.Places: on the
// first of some keys that the file has, or, when it has none, on the last.
func (c *Config) Finding(message string, keys ...string) *Finding {
	f := &Finding{File: c.Path, Message: message}
	if i := slices.IndexFunc(keys, func(key string) bool { return c.places[key] > 0 }); i >= 0 {
		f.Key, f.Line = keys[i], c.places[keys[i]]
	} else if len(keys) > 0 {
		f.Key = keys[len(keys)-1]
	}
	return f
}
