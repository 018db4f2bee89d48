package manual

import (
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// Reference writes docs/reference/commands.md: all commands on one page.
func Reference(out io.Writer, app *kong.Application) error {
	return write(out, "reference.tmpl", modelOf(app))
}

// typed is what a command is typed like, as plain text.
func typed(c *command) string {
	return strings.NewReplacer(`\fB`, "", `\fI`, "", `\fR`, "", `\-`, "-").Replace(synopsis(c))
}

// cell is text that fits into a table of Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(text)
}
