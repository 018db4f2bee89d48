package secret

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"poolkeeper/cmd/poolkeeper/terminal"
	"poolkeeper/configs/sealed"
	"poolkeeper/zkmodel/listing"
)

// ListCmd lists sealed values.
type ListCmd struct {
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
	w := tabwriter.NewWriter(terminal.Safe(a.Stdout), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHERE\tPATH\tSEALED TO\tOPENS HERE")
	for _, f := range files {
		for _, s := range f.values() {
			place := s.Path.String()
			recipient := sealed.Recipient(s.Value)
			opens := opensHere(keys, s.Value, place)
			if strings.HasPrefix(opens, "no: ") {
				closed++
			}
			if since, is, err := keys.Unchanged(s.Value, place); err == nil && is {
				unchanged++
				opens += "; to be changed, since " + since.UTC().Format(time.DateOnly)
			}
			fmt.Fprintf(w, "%s:%d\t%s\t%s\t%s\n", f.name, s.Line, listing.Visible(place), cmp.Or(recipient, "?"), opens)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if unchanged > 0 {
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
