package logging

import (
	"errors"
	"strings"

	"gopkg.in/yaml.v3"
)

// yaml reads Python's dictConfig, of which JSON is a part.
func (d *document) yaml(text []byte) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return errors.New("it is no mapping")
	}
	each(doc.Content[0], func(key string, line int, value *yaml.Node) {
		switch key {
		case "version", "disable_existing_loggers", "incremental":
		case "root":
			d.loggers["root"] = loggerOf(line, value)
		case "loggers":
			each(value, func(name string, line int, value *yaml.Node) {
				if name == "" {
					name = "root"
				}
				d.loggers[name] = loggerOf(line, value)
			})
		case "handlers":
			each(value, func(name string, line int, value *yaml.Node) {
				s := section{line: line, level: scalar(value, "level")}
				s.handler(scalar(value, "class"), scalar(value, "filename"))
				d.handlers[name] = s
			})
		case "formatters":
			d.warn(line, "formatters have no effect: lines are written as ours are")
		default:
			d.warn(line, "%s has no effect", key)
		}
	})
	return nil
}

// loggerOf is a logger of dictConfig.
func loggerOf(line int, value *yaml.Node) section {
	s := section{line: line, level: scalar(value, "level"), propagate: true}
	each(value, func(key string, _ int, value *yaml.Node) {
		switch key {
		case "handlers":
			for _, name := range value.Content {
				s.handlers = append(s.handlers, name.Value)
			}
		case "propagate":
			var is any
			if value.Decode(&is) == nil {
				s.propagate = is == true || is == 1
			}
		}
	})
	return s
}

// each goes through a mapping.
func each(value *yaml.Node, do func(key string, line int, value *yaml.Node)) {
	if value.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(value.Content); i += 2 {
		do(value.Content[i].Value, value.Content[i].Line, value.Content[i+1])
	}
}

// scalar is the text of a key.
func scalar(value *yaml.Node, name string) (text string) {
	each(value, func(key string, _ int, value *yaml.Node) {
		if key == name && value.Kind == yaml.ScalarNode {
			text = value.Value
		}
	})
	return text
}

// ini reads Python's fileConfig.
func (d *document) ini(text string) {
	kind, name, line := "", "", 0
	values := map[string]string{}
	flush := func() {
		switch kind {
		case "logger":
			s := section{line: line, level: values["level"], handlers: words(values["handlers"]), propagate: values["propagate"] != "0"}
			if q := values["qualname"]; q != "" && name != "root" {
				name = q
			}
			d.loggers[name] = s
		case "handler":
			s := section{line: line, level: values["level"]}
			s.handler(values["class"], firstText(values["args"]))
			d.handlers[name] = s
		case "formatter":
			d.warn(line, "formatter %s has no effect: lines are written as ours are", name)
		}
		clear(values)
	}
	key := ""
	for n, raw := range strings.Split(text, "\n") {
		t := strings.TrimSpace(raw)
		switch {
		case t == "" || t[0] == '#' || t[0] == ';':
		case t[0] == '[' && strings.HasSuffix(t, "]"):
			flush()
			line = n + 1
			kind, name, _ = strings.Cut(t[1:len(t)-1], "_")
		case raw[0] == ' ' || raw[0] == '\t':
			values[key] += " " + t
		default:
			at := strings.IndexAny(t, "=:")
			if at < 0 {
				d.warn(n+1, "%q has no effect: it is no section and no key", t)
				continue
			}
			key = strings.ToLower(strings.TrimSpace(t[:at]))
			values[key] = strings.TrimSpace(t[at+1:])
		}
	}
	flush()
}

// words are those between commas.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

// firstText is the first text in the arguments of a Python call: ('/var/log/x.log', 'a').
func firstText(args string) string {
	at := strings.IndexAny(args, `'"`)
	if at < 0 {
		return ""
	}
	text, _, _ := strings.Cut(args[at+1:], args[at:at+1])
	return text
}
