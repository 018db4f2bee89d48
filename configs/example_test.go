package configs_test

import (
	"errors"
	"fmt"

	"poolkeeper/configs"
)

// A daemon loads, logs the warnings, and asks for what it needs.
func ExampleLoad() {
	config, err := configs.Load("poolkeeper.yaml", configs.Options{})
	if err != nil {
		fmt.Println(err) // one finding a line
		return
	}
	for _, warning := range config.Warnings {
		fmt.Println(warning)
	}
	for _, image := range config.DiskImages {
		fmt.Println(image.Name, config.ImageFormats(image.Name))
	}
	// Output: tiny-root [qcow2]
}

// Every error says where it is, and what may have been meant.
func ExampleOptions_strict() {
	_, err := configs.Load("testdata/misspelt.warn.yml", configs.Options{Strict: true})
	if first, ok := errors.AsType[*configs.Finding](err); ok {
		fmt.Println(first)
	}
	// Output: testdata/misspelt.warn.yml:1: image-dir: unknown key (did you mean "images-dir"?)
}
