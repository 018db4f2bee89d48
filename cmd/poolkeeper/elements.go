package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"poolkeeper/builder/dib"
	"poolkeeper/configs"
	"poolkeeper/elements"
)

// elementsInstallCmd writes the elements that the program carries where a
// configuration's elements-dir can name them.
type elementsInstallCmd struct {
	Dir string `arg:"" default:"/opt/poolkeeper/elements" help:"Where to write them (${default}); other elements there stay."`
}

// Run is the command.
func (c elementsInstallCmd) Run(a *app) error {
	ownUmask() // builders of other users read them
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("install elements: %w", err)
	}
	if err := elements.Extract(c.Dir); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "elements are in %s\n", c.Dir)
	return err
}

// elementWarnings says, a line each, what of the folders and elements of a
// configuration is not on this host. They are no mistakes of the file: it may be
// meant for another host, and hosts that build nothing need none of them.
func elementWarnings(cfg *configs.Config) []string {
	var told []string
	for _, dir := range filepath.SplitList(cfg.ElementsDir) {
		if err := dib.CheckFolder(dir); err != nil {
			told = append(told, fmt.Sprintf("%s: elements-dir: %v: a builder on this host finds no elements there", cfg.Path, err))
		}
	}
	command, err := exec.LookPath(dib.Command)
	if err != nil {
		return told // diskimage-builder is not here, and what it brings is not known
	}
	own := dib.OwnElements(command)
	for _, image := range cfg.DiskImages {
		if own == "" || image.DIBCmd != dib.Command || image.EnvVars["ELEMENTS_PATH"] != "" {
			continue // what another program finds is not known
		}
		folders := append(filepath.SplitList(cfg.ElementsDir), own)
		for _, name := range dib.MissingElements(folders, image.Elements) {
			told = append(told, fmt.Sprintf("%s: diskimages[%s].elements: this host has no element %s, neither in elements-dir nor with diskimage-builder",
				cfg.Path, image.Name, name))
		}
	}
	return told
}
