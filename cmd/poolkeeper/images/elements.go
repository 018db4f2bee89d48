package images

import (
	"fmt"
	"os"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/elements"
)

// ElementsInstallCmd writes the elements that the program carries where a
// configuration's elements-dir can name them.
type ElementsInstallCmd struct {
	Dir string `arg:"" default:"/opt/poolkeeper/elements" help:"Where to write them (${default}); other elements there stay."`
}

// Run is the command.
func (c ElementsInstallCmd) Run(a *app.App) error {
	app.OwnUmask() // builders of other users read them
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("install elements: %w", err)
	}
	if err := elements.Extract(c.Dir); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Stdout, "elements are in %s\n", c.Dir)
	return err
}
