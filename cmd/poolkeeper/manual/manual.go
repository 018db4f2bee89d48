// Package manual writes what is made from the command line's own definitions: completion for
// shells, and man pages.
package manual

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/alecthomas/kong"
	"github.com/google/renameio/v2"

	"poolkeeper/cmd/poolkeeper/app"
)

//go:embed *.tmpl
var templates embed.FS

// CompletionCmd prints the completion of a shell.
type CompletionCmd struct {
	Shell string `arg:"" enum:"bash,zsh" help:"bash or zsh."`
}

// Run is the command.
func (c CompletionCmd) Run(line *kong.Context, a *app.App) error {
	return write(a.Stdout, c.Shell+".tmpl", modelOf(line.Model))
}

// ManCmd writes man pages.
type ManCmd struct {
	Dir string `arg:"" optional:"" help:"The folder to write them into, one page a command; without it poolkeeper(1) is printed."`
}

// Run is the command.
func (c ManCmd) Run(line *kong.Context, a *app.App) error {
	root := modelOf(line.Model)
	if c.Dir == "" {
		return write(a.Stdout, "program.1.tmpl", root)
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil { //nolint:gosec // pages are for all to read
		return fmt.Errorf("make the folder for man pages: %w", err)
	}
	if err := writePage(c.Dir, "poolkeeper", "program.1.tmpl", root); err != nil {
		return err
	}
	for _, one := range root.Commands {
		if err := writePage(c.Dir, pageOf(one), "command.1.tmpl", one); err != nil {
			return err
		}
		for _, other := range one.Words[1:] { // "delete" is the page of "node-delete"
			text := fmt.Sprintf(".so man1/%s.1\n", pageOf(one))
			if err := renameio.WriteFile(filepath.Join(c.Dir, "poolkeeper-"+other+".1"), []byte(text), 0o644, renameio.IgnoreUmask()); err != nil {
				return fmt.Errorf("write man page: %w", err)
			}
		}
	}
	return nil
}

// pageOf is the name of a command's man page.
func pageOf(c *command) string { return "poolkeeper-" + c.Words[0] }

// writePage writes one page into a folder.
func writePage(dir, name, template string, data any) error {
	var text bytes.Buffer
	if err := write(&text, template, data); err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(dir, name+".1"), text.Bytes(), 0o644, renameio.IgnoreUmask()); err != nil {
		return fmt.Errorf("write man page: %w", err)
	}
	return nil
}

// write fills a template in.
func write(out io.Writer, name string, data any) error {
	t, err := template.New(name).Funcs(template.FuncMap{
		"all": func(c *command) []*command { return c.all() }, "groups": groups, "page": pageOf, "version": func() string { return app.Version },
		"codes": func() []Code { return Codes }, "join": strings.Join, "upper": strings.ToUpper,
		"roff": roff, "dash": dash, "name": name1, "synopsis": synopsis,
		"quote": quote, "typed": typed, "cell": cell, "described": described, "flagWords": flagWords, "takes": takes, "kinds": kinds,
	}).ParseFS(templates, "*.tmpl")
	if err != nil {
		return fmt.Errorf("read template %s: %w", name, err)
	}
	return t.ExecuteTemplate(out, name, data)
}

// group is a heading and its commands.
type group struct {
	Title    string
	Commands []*command
}

// groups are the commands of the program below their headings.
func groups(root *command) []*group {
	var all []*group
	at := map[string]*group{}
	for _, c := range root.Commands {
		if at[c.Group] == nil {
			at[c.Group] = &group{Title: c.Group}
			all = append(all, at[c.Group])
		}
		at[c.Group].Commands = append(at[c.Group].Commands, c)
	}
	return all
}
