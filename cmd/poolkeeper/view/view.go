// Package view is how commands show listings: in which form, which rows, in which order, and
// fitted to a terminal.
package view

import (
	"io"
	"os"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel/listing"
)

// Forms are how tables are printed.
type Forms struct {
	Output string `short:"o" enum:"table,wide,json,json-v1,yaml,name" default:"table" placeholder:"FORM" help:"How to print: table; wide, with all columns; json, with the keys of Nodepool's pages; json-v1 or yaml, documents of version v1; name, one a line (${default})."`
	Detail bool   `help:"Print more columns, as -o wide; documents always have all."`
}

// Flags are those of every listing.
type Flags struct {
	Forms
	Sort string `placeholder:"COLUMN" help:"Order by a column; -COLUMN has the largest first."`
}

// ByState filters by state.
type ByState struct {
	State []string `placeholder:"STATE" help:"Only what is in this state. May be given again, or be a list: a,b."`
}

// ByProvider filters by provider.
type ByProvider struct {
	Provider []string `placeholder:"PROVIDER" help:"Only what is of this provider. May be given again, or be a list: a,b."`
}

// ByLabel filters by label.
type ByLabel struct {
	Label []string `placeholder:"LABEL" help:"Only what is of this label. May be given again, or be a list: a,b."`
}

// ByImage filters by image.
type ByImage struct {
	Image []string `placeholder:"IMAGE" help:"Only what is of this image. May be given again, or be a list: a,b."`
}

// Filter is one that was asked for.
type Filter struct {
	by            listing.By
	values, known []string
}

// States are the filter by state, where these are known.
func States[S ~string](f ByState, known ...S) Filter {
	names := []string{"broken"} // of a record that cannot be read
	for _, state := range known {
		names = append(names, string(state))
	}
	return Filter{listing.ByState, f.State, names}
}

// Providers are the filter by provider, with the names of a configuration.
func (f ByProvider) Providers(cfg *configs.Config) Filter {
	known, _ := cfg.ProviderNames()
	for _, p := range cfg.Skipped {
		known = append(known, p.Name)
	}
	return Filter{listing.ByProvider, f.Provider, known}
}

// Labels are the filter by label, with the names of a configuration.
func (f ByLabel) Labels(cfg *configs.Config) Filter {
	var known []string
	for _, l := range cfg.Labels {
		known = append(known, l.Name)
	}
	return Filter{listing.ByLabel, f.Label, known}
}

// Images are the filter by image, with the names of a configuration.
func (f ByImage) Images(cfg *configs.Config) Filter {
	var known []string
	for _, i := range cfg.DiskImages {
		known = append(known, i.Name)
	}
	return Filter{listing.ByImage, f.Image, known}
}

// Show prints a listing as it was asked for. What could not be read is marked there, and told.
//
// Errors: a filter has a value that nobody knows, or there is no such column to sort by; then
// nothing is printed.
func (f Flags) Show(a *app.App, table *listing.Table, filters ...Filter) error {
	if err := f.Arrange(table, filters...); err != nil {
		return err
	}
	a.TellBroken(table.Broken())
	return f.Write(a.Stdout, table)
}

// InText reports whether people read it: then there may be words beside a table.
func (f Forms) InText() bool { return f.Output == "table" || f.Output == "wide" }

// Write prints a table as it was asked for.
func (f Forms) Write(out io.Writer, table *listing.Table) error {
	switch now := time.Now(); f.Output {
	case "json":
		return table.WriteJSON(out)
	case "json-v1":
		return table.WriteDocument(out, now)
	case "yaml":
		return table.WriteYAML(out, now)
	case "name":
		return table.WriteNames(out)
	}
	return f.text(out, table)
}

// Pick leaves of a table what filters want.
//
// Errors: one has a value that nobody knows.
func Pick(table *listing.Table, filters ...Filter) error { return Flags{}.Arrange(table, filters...) }

// Arrange leaves the rows that were asked for, in their order.
//
// Errors: those of Show.
func (f Flags) Arrange(table *listing.Table, filters ...Filter) error {
	for _, one := range filters { // before any row is left out
		if err := table.Knows(one.by, one.values, one.known); err != nil {
			return err
		}
	}
	for _, one := range filters {
		table.Filter(one.by, one.values)
	}
	if f.Sort == "" {
		return nil
	}
	return table.Sort(f.Sort)
}

// detailed reports whether all columns were asked for.
func (f Forms) detailed() bool { return f.Detail || f.Output == "wide" }

// text prints a table: for a terminal fitted to it, else Nodepool's.
func (f Forms) text(out io.Writer, table *listing.Table) error {
	columns, _, terminal := app.Screen(out)
	if !terminal {
		return table.WriteText(out, f.detailed())
	}
	return table.WriteScreen(out, listing.Screen{Width: columns, Colour: coloured(), Detail: f.detailed()})
}

// coloured reports whether a terminal is to have colours (no-color.org).
func coloured() bool { return os.Getenv("NO_COLOR") == "" && !dumb() }

// dumb reports whether a terminal can neither write over nor colour.
func dumb() bool { return os.Getenv("TERM") == "dumb" }
