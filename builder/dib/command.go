package dib

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"poolkeeper/configs"
)

// Image is what a command line says of the image to build.
type Image struct {
	Command  string   // dib-cmd: a command and its arguments, quoted as in a shell
	Formats  []string // at least one
	Elements []string
	Base     string // path of the files to make, without their endings
}

// Argv is Nodepool's command line for the image. No shell sees it. The word %p
// in dib-cmd is replaced by here, the folder of our own binary.
//
// Errors: ErrCommand when dib-cmd is empty or its quotes do not match.
func (i Image) Argv(here string) ([]string, error) {
	argv, err := configs.SplitWords(strings.ReplaceAll(i.Command, "%p", here))
	if err != nil {
		return nil, fmt.Errorf("%w %q: %w", ErrCommand, i.Command, err)
	}
	if len(argv) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrCommand)
	}
	formats := strings.Join(slices.Sorted(slices.Values(i.Formats)), ",")
	argv = append(argv, "-x", "-t", formats, "--checksum", "--no-tmpfs")
	if strings.Contains(formats, "qcow2") {
		argv = append(argv, "--qemu-img-options", "compat=0.10")
	}
	argv = append(argv, "-o", i.Base)
	for _, element := range i.Elements {
		argv = append(argv, strings.Fields(element)...)
	}
	return argv, nil
}

// CheckCommand reports why a dib-cmd cannot be run on this host.
//
// Errors: ErrCommand.
func CheckCommand(command string) error {
	argv, err := Image{Command: command}.Argv(".")
	if err == nil && !strings.Contains(command, "%p") {
		_, err = lookPath(argv[0], os.Environ())
	}
	return err
}

// lookPath finds a command as execvp would with the environment of the build,
// which may have another PATH than ours.
func lookPath(command string, env []string) (string, error) {
	if strings.Contains(command, "/") {
		return command, runnable(command)
	}
	for _, dir := range filepath.SplitList(lookup(env, "PATH")) {
		candidate := filepath.Join(dir, command)
		if runnable(candidate) == nil {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("%w %q: not found in the PATH of the build (%s)", ErrCommand, command, lookup(env, "PATH"))
}

// runnable refuses what is no executable file.
func runnable(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w %q: no such file", ErrCommand, file)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrCommand, err)
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fmt.Errorf("%w %q: not an executable file", ErrCommand, file)
	}
	return nil
}
