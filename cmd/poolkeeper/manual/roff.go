package manual

import "strings"

// Code is an exit code, and what it says.
type Code struct{ Code, Of, Says string }

// Codes are the program's exit codes, as docs/exit-codes.md has them.
var Codes = []Code{
	{"0", "all", "it is done; of status: all is well"},
	{"1", "all", "it is not done, and stderr says why"},
	{"2", "all", "wrong usage: nothing was tried"},
	{"3", "status, doctor", "it is shown, and something needs attention"},
	{"78", "builder, launcher", "the configuration cannot be used"},
	{"any", "ssh", "that of the command on the node"},
}

// roff is text as a page shows it. A line that begins with a dot or a quote would be a request.
func roff(text string) string {
	text = strings.ReplaceAll(text, `\`, `\e`)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// dash is text that is typed as it stands: its hyphens are no typographer's.
func dash(text string) string { return strings.ReplaceAll(roff(text), "-", `\-`) }

// name1 is a help's sentence as the section NAME has it: without what follows a first sentence.
func name1(help string) string {
	first, _, _ := strings.Cut(help, ". ")
	first = strings.TrimSuffix(first, ".")
	if first == "" {
		return first
	}
	return roff(strings.ToLower(first[:1]) + first[1:])
}

// synopsis is what a command is typed like, in bold and italics.
func synopsis(c *command) string {
	parts := []string{`\fBpoolkeeper ` + dash(c.Path) + `\fR`}
	needed, optional := neededFlags(c.Flags)
	parts = append(parts, needed...)
	if optional {
		parts = append(parts, `[\fIflags\fR]`)
	}
	for _, a := range c.Args {
		name := `\fI` + dash(a.Name) + `\fR`
		if a.Repeats {
			name += "..."
		}
		if !a.Needed {
			name = "[" + name + "]"
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, " ")
}

// neededFlags are those that have to be given, of some that exclude each other one, and
// whether there are more.
func neededFlags(flags []flag) (needed []string, more bool) {
	at := map[string]int{}
	for _, f := range flags {
		if !f.Needed {
			more = true
			continue
		}
		text := `\fB` + dash(f.Names[len(f.Names)-1]) + `\fR`
		if f.Value != "" {
			text += ` \fI` + dash(f.Value) + `\fR`
		}
		if before, ok := at[f.Among]; ok && f.Among != "" {
			needed[before] += " | " + text
			continue
		}
		at[f.Among] = len(needed)
		needed = append(needed, text)
	}
	return needed, more
}
