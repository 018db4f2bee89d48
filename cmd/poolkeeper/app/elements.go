package app

import (
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

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

// HostFact is something that a configuration needs and this host does not have.
type HostFact struct {
	Kind string // of the daemon that needs it; "" means both
	Text string
}

// HostFacts returns what a configuration needs and this host does not have: programs, elements, usable keys.
func HostFacts(cfg *configs.Config) []HostFact {
	var facts []HostFact
	if tls := cfg.ZooKeeper.TLS; tls != nil && isEncryptedKey(tls.Key) {
		facts = append(facts, HostFact{"", fmt.Sprintf("%s: zookeeper-tls.key: the key in %s is encrypted, no daemon can use it: store it without a passphrase", cfg.Path, tls.Key)})
	}
	checked := map[string]bool{}
	for _, image := range cfg.DiskImages {
		if checked[image.DIBCmd] {
			continue
		}
		checked[image.DIBCmd] = true
		if err := dib.CheckCommand(image.DIBCmd); err != nil {
			facts = append(facts, HostFact{"builder", fmt.Sprintf("%s: diskimages[%s].dib-cmd: %v", cfg.Path, image.Name, err)})
		}
	}
	for _, line := range ElementWarnings(cfg) {
		facts = append(facts, HostFact{"builder", line})
	}
	return facts
}

// isEncryptedKey returns whether a file holds a private key that needs a passphrase.
func isEncryptedKey(file string) bool {
	data, err := os.ReadFile(file) //nolint:gosec // of the configuration
	if err != nil {
		return false
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
			return true
		}
	}
	return false
}
