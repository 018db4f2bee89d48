package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs/kit"
)

// line is a command line that was read.
type line struct {
	*kong.Context
	flags   *app.Flags
	printed bool // help or version, which is all that was asked for
}

// parse reads a command line. A model of all commands takes several times as long to make as the
// rest of a command's begin, so at first it is one of those that the line can mean; what
// this one does not take is read with the model of all, which knows what was meant.
func parse(args []string, stdout, stderr io.Writer) (*line, error) {
	if few := meant(args); len(few) > 0 {
		model := reflect.New(reflect.StructOf(append([]reflect.StructField{flagsField}, few...)))
		var out bytes.Buffer
		if read, err := parseAs(model.Interface(), args, &out, &out); err == nil && read.Selected() != nil {
			_, _ = stdout.Write(out.Bytes())                                   // help of a command
			read.flags = model.Elem().Field(0).Addr().Interface().(*app.Flags) //nolint:forcetypeassert // flagsField
			return read, nil
		}
	}
	var all cli
	read, err := parseAs(&all, args, stdout, stderr)
	read.flags = &all.Flags
	return read, err
}

// flagsField are the flags of all commands in a model of some.
var flagsField = reflect.StructField{Name: "Flags", Type: reflect.TypeFor[app.Flags](), Tag: `embed:""`}

// meant are the fields of those commands whose names stand among the arguments, wherever: a
// value of a flag may be one, too. There are none where the model of all is needed: for
// the help of the program, and for commands that print from it.
func meant(args []string) (fields []reflect.StructField) {
	words := make([]string, 0, len(args))
	for _, arg := range args {
		words = append(words, bare(arg))
	}
	for field := range reflect.TypeFor[cli]().Fields() {
		if _, isCommand := field.Tag.Lookup("cmd"); !isCommand {
			continue
		}
		name := field.Tag.Get("name")
		if name == "" {
			name = field.Name // kong's name has dashes between its words
		}
		names := append([]string{name}, strings.Split(field.Tag.Get("aliases"), ",")...)
		if !slices.ContainsFunc(names, func(name string) bool { return name != "" && slices.Contains(words, bare(name)) }) {
			continue
		}
		if _, all := field.Tag.Lookup("model"); all {
			return nil
		}
		fields = append(fields, field)
	}
	return fields
}

// bare is a command's name without what differs between how it is typed and a field's name.
func bare(name string) string { return strings.ToLower(strings.ReplaceAll(name, "-", "")) }

// parseAs reads a command line by a model.
func parseAs(model any, args []string, stdout, stderr io.Writer) (*line, error) {
	read := &line{}
	parser, err := kong.New(model,
		kong.Name("poolkeeper"),
		kong.Description("Builds machine images, uploads them to clouds and launches nodes from them."),
		kong.Vars{"version": versionText()},
		kong.ExplicitGroups(groups),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}),
		kong.Writers(stdout, stderr),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)),
		kong.Exit(func(int) { read.printed = true }),
	)
	if err != nil { // a mistake in the tags of commands
		return read, err
	}
	read.Context, err = parser.Parse(args)
	if failed, ok := errors.AsType[*kong.ParseError](err); ok && read.printed {
		read.Context, err = failed.Context, nil // what is missing then is of no interest
	}
	return read, err
}

// decodeDuration reads the value of a flag that is a duration.
func decodeDuration(typed *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := typed.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := kit.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("expected a duration, such as 30m, 2d or 1w, got %q", text)
	}
	target.SetInt(int64(d))
	return nil
}
