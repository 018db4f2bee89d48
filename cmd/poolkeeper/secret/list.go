package secret

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs/sealed"
	"poolkeeper/zkmodel/listing"
)

// ListCmd lists sealed values.
type ListCmd struct {
	view.Flags
	Files []string `arg:"" name:"file" help:"Files with sealed values."`
}

// Help is what the command's own help says.
func (ListCmd) Help() string {
	return "No value is shown. With a key file the last column says whether this host opens the value: by the newest " +
		"key, by an older one (secret reseal), or why not: then the exit code is 1; and since when a value is to be " +
		"changed, because it was sealed anew by rotate or reseal and has not been set since."
}

// Run is the command.
func (c ListCmd) Run(a *App, of *Cmd) error {
	keys, unusable := of.keys(a) // the rows say why
	if errors.Is(unusable, errNoKeyFile) {
		unusable = nil
	}
	if keys == nil && unusable != nil {
		return unusable
	}
	files, err := readFiles(c.Files)
	if err != nil {
		return err
	}
	closed, unchanged := 0, 0
	table := listing.NewPlain("sealed-values", listing.Head{Title: "WHERE", Key: "where"}, listing.Head{Title: "PATH", Key: "path"},
		listing.Head{Title: "SEALED TO", Key: "sealed_to"}, listing.Head{Title: "OPENS HERE", Key: "opens_here"}, listing.Head{Key: "unchanged_since"})
	table.Named(func(cells []string) string { return cells[1] })
	for _, f := range files {
		for _, s := range f.values() {
			place := s.Path.String()
			recipient := sealed.Recipient(s.Value)
			opens := opensHere(keys, s.Value, place)
			if strings.HasPrefix(opens, "no: ") {
				closed++
			}
			var kept any
			if since, is, err := keys.Unchanged(s.Value, place); err == nil && is {
				unchanged++
				kept = since
				opens += "; to be changed, since " + since.UTC().Format(time.DateOnly)
			}
			table.Row(fmt.Sprintf("%s:%d", f.name, s.Line), place, listing.Shown{Text: cmp.Or(recipient, "?"), Value: recipient}, opens, kept)
		}
	}
	if err := c.Arrange(table); err != nil {
		return err
	}
	if err := c.Write(a.Stdout, table); err != nil {
		return err
	}
	if unchanged > 0 && c.InText() {
		fmt.Fprintf(a.Stdout, "To be changed at their clouds and services, and set anew: %d\n", unchanged)
	}
	switch {
	case unusable != nil:
		return unusable
	case closed > 0:
		return fmt.Errorf("%w: %d", errClosed, closed)
	}
	return nil
}

// errClosed: the key file does not open all that it should.
var errClosed = errors.New("values that this host does not open")

// opensHere says whether keys open a value.
func opensHere(keys *sealed.Keys, text, place string) string {
	if keys == nil {
		return "no key file given"
	}
	_, err := keys.Open(text, place)
	switch at := slices.Index(keys.Recipients(), sealed.Recipient(text)); {
	case errors.Is(err, sealed.ErrNoKey):
		return "no: not the key of " + keys.File()
	case err != nil:
		return "no: " + listing.Visible(err.Error())
	case at > 0:
		return "yes, by an older key"
	}
	return "yes"
}
