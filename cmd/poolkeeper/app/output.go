package app

import (
	"encoding/json"
	"fmt"
	"io"

	"poolkeeper/zkmodel/listing"
)

// OutputFlags are the flags of every listing.
type OutputFlags struct {
	Output string `short:"o" enum:"table,json" default:"table" placeholder:"table|json" help:"How to print: table or json (${default})."`
	Detail bool   `help:"Print more columns; JSON always has all."`
}

// Show prints a listing in the shape that was asked for. What could not be read is
// marked there, and told.
func (o OutputFlags) Show(a *App, table *listing.Table) error {
	a.TellBroken(table.Broken())
	if o.Output == "json" {
		return table.WriteJSON(a.Stdout)
	}
	return table.WriteText(a.Stdout, o.Detail)
}

// TellBroken says on stderr that some records could not be read, by what is wrong with each.
func (a *App) TellBroken(broken []error) {
	if len(broken) > 0 {
		fmt.Fprintf(a.Stderr, "poolkeeper: %d records or lists of them cannot be read or decoded and show as broken: %s\n",
			len(broken), listing.Visible(a.Secrets.Text(broken[0].Error())))
	}
}

// PrintJSON prints a value as people and programs read it.
func PrintJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
