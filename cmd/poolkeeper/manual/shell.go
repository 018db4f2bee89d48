package manual

import "strings"

// quote is text as one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// described is a word and what it is for, as zsh's _describe takes it.
func described(word, help string) string {
	first, _, _ := strings.Cut(help, ". ")
	return quote(strings.ReplaceAll(word, ":", `\:`) + ":" + strings.TrimSuffix(first, "."))
}

// flagWords are all flags, as they are typed.
func flagWords(flags []flag) string {
	var words []string
	for _, f := range flags {
		words = append(words, f.Names...)
	}
	return strings.Join(words, " ")
}

// takes are the flags that have a value.
func takes(flags []flag) string {
	var words []string
	for _, f := range flags {
		if f.Value != "" {
			words = append(words, f.Names...)
		}
	}
	return strings.Join(words, " ")
}

// valued is a flag's spelling behind a command, as a pattern of a shell's case.
type valued struct {
	Patterns []string
	Kind     kind
}

// kinds are the flags of a command of whose values something is known.
func kinds(c *command) []valued {
	var all []valued
	for _, f := range c.Flags {
		if f.Kind == "" {
			continue
		}
		one := valued{Kind: f.Kind}
		for _, path := range c.Paths {
			if c.Path == "" {
				path = "*" // the program's own flags are every command's
			}
			for _, name := range f.Names {
				pattern := quote(path + " " + name)
				if path == "*" {
					pattern = "*" + quote(" "+name)
				}
				one.Patterns = append(one.Patterns, pattern)
			}
		}
		all = append(all, one)
	}
	return all
}
