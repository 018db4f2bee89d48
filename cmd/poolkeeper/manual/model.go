package manual

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// command is one command as pages and completion tell of it.
type command struct {
	Path     string // "wave list"; "" is the program
	Paths    []string
	Words    []string // its last word, and other names for it
	Help     string   // a sentence
	Group    string
	Flags    []flag // its own, those of the commands above it included
	Args     []argument
	Commands []*command
}

// flag is one flag.
type flag struct {
	Names  []string // as they are typed: "-o", "--output"
	Help   string
	Value  string // what stands for its value; "" is none
	Kind   kind
	Needed bool
	Among  string // of flags with the same one is given
}

// argument is what stands behind a command.
type argument struct {
	Name    string
	Help    string
	Kind    kind
	Needed  bool
	Repeats bool
}

// kind is what a value can be: "file", "dir", "=" and words, or "" for what is not known here.
type kind string

const (
	aFile kind = "file"
	aDir  kind = "dir"
)

// oneOf is the kind of a value that is one of some words.
func oneOf(words []string) kind { return kind("=" + strings.Join(words, " ")) }

// String is how templates write it.
func (k kind) String() string { return string(k) }

// modelOf is the command line as it is told of: what is hidden is left out.
func modelOf(app *kong.Application) *command {
	root := &command{Paths: []string{""}, Help: app.Help, Flags: flagsOf(app.Node)}
	root.Commands = below(app.Node, root)
	return root
}

// below are the commands of a node.
func below(node *kong.Node, parent *command) []*command {
	var all []*command
	for _, child := range node.Children {
		if child.Hidden || child.Type != kong.CommandNode {
			continue
		}
		c := &command{Words: append([]string{child.Name}, child.Aliases...), Help: child.Help, Flags: flagsOf(child)}
		if child.Group != nil {
			c.Group = child.Group.Title
		}
		if parent.Path != "" {
			c.Flags = append(slices.Clone(parent.Flags), c.Flags...)
		}
		for _, before := range parent.Paths {
			for _, word := range c.Words {
				c.Paths = append(c.Paths, strings.TrimSpace(before+" "+word))
			}
		}
		c.Path = c.Paths[0]
		for _, p := range child.Positional {
			c.Args = append(c.Args, argument{Name: p.Name, Help: p.Help, Kind: kindOf(p, p.Name), Needed: p.Required, Repeats: p.IsCumulative()})
		}
		c.Commands = below(child, c)
		all = append(all, c)
	}
	return all
}

// flagsOf are a node's own flags.
func flagsOf(node *kong.Node) []flag {
	var all []flag
	for _, f := range node.Flags {
		if f.Hidden {
			continue
		}
		one := flag{Help: f.Help, Needed: f.Required, Among: strings.Join(f.Xor, " ")}
		if f.Short != 0 {
			one.Names = append(one.Names, "-"+string(f.Short))
		}
		one.Names = append(one.Names, "--"+f.Name)
		if f.Tag.Negatable != "" {
			one.Names = append(one.Names, "--no-"+f.Name)
		}
		if !f.IsBool() && !f.IsCounter() {
			one.Value, one.Kind = f.FormatPlaceHolder(), kindOf(f.Value, f.PlaceHolder)
		}
		all = append(all, one)
	}
	return all
}

// kindOf is what a value can be: its words, or what its placeholder or name says of it.
func kindOf(v *kong.Value, name string) kind {
	if v.Enum != "" {
		return oneOf(slices.DeleteFunc(v.EnumSlice(), func(word string) bool { return word == "" }))
	}
	switch strings.ToLower(name) {
	case "file", "path", "files":
		return aFile
	case "dir":
		return aDir
	}
	return ""
}

// walk visits a command and all below it.
func (c *command) walk(visit func(*command)) {
	visit(c)
	for _, sub := range c.Commands {
		sub.walk(visit)
	}
}

// all are a command and all below it.
func (c *command) all() (list []*command) {
	c.walk(func(one *command) { list = append(list, one) })
	return list
}
