package main

import (
	"bytes"
	"fmt"
	"os"

	"gopkg.in/yaml.v3"
)

// review is what was found out of a mutant that survives.
type review struct {
	File string `yaml:"file"`
	// Mutant is its function, operator and text, as the run tells them.
	Mutant string `yaml:"mutant"`
	// Equivalent says why no test can notice it: it does not count then.
	Equivalent string `yaml:"equivalent"`
	// Left says why no test notices it yet: it counts.
	Left string `yaml:"left"`

	matched bool
}

func readReviews(file string) (list []*review, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read reviews: %w", err)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	seen := map[string]bool{}
	for _, v := range list {
		if (v.Equivalent == "") == (v.Left == "") {
			return nil, fmt.Errorf("read %s: %s: it is either equivalent or left, and says why", file, v.Mutant)
		}
		if seen[v.File+v.Mutant] {
			return nil, fmt.Errorf("read %s: %s stands there twice", file, v.Mutant)
		}
		seen[v.File+v.Mutant] = true
	}
	return list, nil
}

// of finds the review of a mutant, nil without one.
func of(list []*review, m Mutant) *review {
	for _, v := range list {
		if v.File == m.File && v.Mutant == m.Name() {
			v.matched = true
			return v
		}
	}
	return nil
}
