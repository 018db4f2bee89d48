package app

import (
	"fmt"
	"os/exec"
	"path/filepath"

	"poolkeeper/builder/dib"
	"poolkeeper/configs"
)

// ElementWarnings says, a line each, what of the folders and elements of a
// configuration is not on this host. They are no mistakes of the file: it may be
// meant for another host, and hosts that build nothing need none of them.
func ElementWarnings(cfg *configs.Config) []string {
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
