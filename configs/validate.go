package configs

import (
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Validate says how a new upload of an image is tried before it serves.
type Validate struct {
	Timeout time.Duration // of the checks, from the boot of the node on
	// Any says that an upload which was validated in one provider is good in all of them.
	Any    bool
	Checks []ValidateCheck // in this order; never empty
	// Label is the one whose resources the node has; "" is the first of the provider
	// that has the image.
	Label string
	// Key is a file of the launcher's host with the private key that the node lets in; "" has
	// host keys read, and nobody log in.
	Key string
	// Serve says that an upload whose checks take too long serves all the same.
	Serve bool
}

// ValidateCheck is one check of a node. Exactly one of its fields is set.
type ValidateCheck struct {
	SSH     bool   // a login works
	Command string // a command of the node's shell that ends with 0
	Script  string // a file of this host, or below elements-dir, that is run there and ends with 0
}

// trials are mappings without which, or with less of which, an image would serve that
// should not: what is unknown in them is as bad as what is wrong.
var trials = []string{"validation", "validation's resources", "check"}

// validate decodes how an image is tried. It replaces what a parent says.
func validate(out **Validate) decodeFunc {
	return func(v value) {
		if v.node.Kind != yaml.MappingNode {
			v.fail("expected a mapping, as validate: {checks: [ssh]}, got %s", v.describe())
			return
		}
		one := &Validate{Timeout: 10 * time.Minute, Checks: []ValidateCheck{{SSH: true}}}
		providers, late := "each", "reject"
		v.decode("validation", fields{
			"timeout":    validateTimeout(&one.Timeout),
			"providers":  oneOf(&providers, "any", "each"),
			"checks":     validateChecks(&one.Checks),
			"key":        notEmpty(&one.Key),
			"resources":  func(v value) { v.decode("validation's resources", fields{"label": checkedName("label", &one.Label)}) },
			"on-timeout": oneOf(&late, "reject", "serve"),
		})
		if i := slices.IndexFunc(one.Checks, func(c ValidateCheck) bool { return !c.SSH }); i >= 0 && one.Key == "" {
			v.fail("commands and scripts need a key that the node lets in: expected key: FILE")
		}
		one.Any, one.Serve = providers == "any", late == "serve"
		*out = one
	}
}

func validateTimeout(out *time.Duration) decodeFunc {
	return func(v value) {
		wholeSeconds(out, 1)(v)
		v.sane(*out, day)
	}
}

// What the record of a trial has room for, in which all of it stands (a script is at most
// 64 KiB, which is known when it is read).
const (
	maxScripts  = 8
	maxCommands = 64 << 10 // bytes, of all commands
)

func validateChecks(out *[]ValidateCheck) decodeFunc {
	return func(v value) {
		var list []ValidateCheck
		for _, item := range v.items() {
			list = append(list, validateCheck(item))
		}
		if len(list) == 0 && v.node.Kind == yaml.SequenceNode {
			v.fail("a validation without checks would validate anything; leave the key out for [ssh]")
		}
		scripts, commands := 0, 0
		for _, c := range list {
			commands += len(c.Command)
			if c.Script != "" {
				scripts++
			}
		}
		if scripts > maxScripts {
			v.fail("%d scripts do not fit into the record of a trial, which has room for %d: put several into one, or bring them with an element", scripts, maxScripts)
		}
		if commands > maxCommands {
			v.fail("commands of %d bytes do not fit into the record of a trial, which has room for %d: write a script", commands, maxCommands)
		}
		*out = list
	}
}

// validateCheck decodes "ssh", or a command or script.
func validateCheck(v value) (c ValidateCheck) {
	if v.node.Kind == yaml.ScalarNode {
		check := ""
		oneOf(&check, "ssh")(v)
		c.SSH = true
		return c
	}
	v.says(func() Shape { return Shape{OneOf: []string{"ssh"}} })
	have := v.decode("check", fields{"command": notEmpty(&c.Command), "script": scriptFile(&c.Script)})
	if len(have) != 1 && v.node.Kind == yaml.MappingNode {
		v.lacks([]string{"command", "script"}, "expected ssh, {command: TEXT} or {script: FILE}")
	}
	return c
}

// scriptFile decodes the path of a script.
func scriptFile(out *string) decodeFunc {
	return func(v value) {
		notEmpty(out)(v)
		if slices.Contains(strings.Split(*out, "/"), "..") {
			v.fail("%q leads out of its folder", *out)
		}
	}
}

// checkValidate looks for what no node could be made of: a label that no pool has
// with the image.
func (l *loader) checkValidate(v value, image string, label string) {
	for i := range l.cfg.Providers {
		for _, pool := range l.cfg.Providers[i].Pools {
			if slices.ContainsFunc(pool.Labels, func(p PoolLabel) bool { return p.Name == label }) {
				return
			}
		}
	}
	v.report(lint, "no pool has the label %q: the uploads of %s are not tried, and never serve", label, image)
}

// Validates reports whether new uploads of any image are tried before they serve.
func (c *Config) Validates() bool {
	return slices.ContainsFunc(c.DiskImages, func(i DiskImage) bool { return i.Validate != nil })
}
