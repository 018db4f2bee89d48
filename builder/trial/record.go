package trial

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// maxScript is how long the script of a check may be (bytes): the launcher reads it out of
// the tree.
const maxScript = 64 << 10

// ErrNotTried says that the image is configured without validate, or the build is gone.
var ErrNotTried = errors.New("it is not to be tried")

// Wanted is the trial of an upload that is not sent yet, as the configuration wants it.
//
// Errors: ErrNotTried; those of a script that cannot be read.
func Wanted(cfg *configs.Config, name, provider string) (*zkmodel.Validation, error) {
	image, ok := cfg.DiskImage(name)
	if !ok || image.Validate == nil {
		return nil, fmt.Errorf("try image %s: %w", name, ErrNotTried)
	}
	want := image.Validate
	v := &zkmodel.Validation{Timeout: zkmodel.Seconds(want.Timeout.Seconds()), Label: want.Label, AnyOf: want.Any, Serve: want.Serve}
	if section, ok := cfg.Provider(provider); ok {
		if one, ok := section.Image(name); ok {
			v.ConnectionType, v.ConnectionPort = one.ConnectionType, one.ConnectionPort
		}
	}
	for _, c := range want.Checks {
		check := zkmodel.Check{Kind: zkmodel.CheckSSH}
		switch {
		case c.Command != "":
			check = zkmodel.Check{Kind: zkmodel.CheckCommand, Text: c.Command}
		case c.Script != "":
			text, err := script(cfg, c.Script)
			if err != nil {
				return nil, fmt.Errorf("image %s cannot be tried, so that it is not uploaded: %w", name, err)
			}
			check = zkmodel.Check{Kind: zkmodel.CheckScript, Name: c.Script, Text: text}
		}
		v.Checks = append(v.Checks, check)
	}
	record, err := v.Encode()
	if err == nil && len(record) > zkmodel.MaxValidation {
		err = fmt.Errorf("its checks are %d bytes long in ZooKeeper, which has room for %d: shorten its scripts", len(record), zkmodel.MaxValidation)
	}
	if err != nil {
		return nil, fmt.Errorf("image %s cannot be tried, so that it is not uploaded: %w", name, err)
	}
	return v, nil
}

// script reads a check's script: a file of this host, or the first in a folder of
// elements.
func script(cfg *configs.Config, name string) (string, error) {
	places := []string{name}
	if !filepath.IsAbs(name) {
		places = nil
		for _, dir := range filepath.SplitList(cfg.ElementsDir) {
			places = append(places, filepath.Join(dir, name))
		}
	}
	for _, place := range places {
		file, err := os.Open(place) //nolint:gosec // as configured
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		defer func() { _ = file.Close() }()
		text, err := io.ReadAll(io.LimitReader(file, maxScript+1))
		if err == nil && len(text) > maxScript {
			err = fmt.Errorf("script %s is longer than %d bytes", place, maxScript)
		}
		if err == nil && !utf8.Valid(text) { // the record is JSON, which would change it
			err = fmt.Errorf("script %s is not text in UTF-8", place)
		}
		return string(text), err
	}
	return "", fmt.Errorf("script %s is in none of the folders of elements (%s)", name, strings.Join(places, ", "))
}

// WantedFor is Wanted for an upload that is in its cloud already.
func WantedFor(cfg *configs.Config, image *zkmodel.Image, u *zkmodel.Upload) (*zkmodel.Validation, error) {
	v, err := zkmodel.WaitingValidation("it waits until a canary is decided"), error(nil)
	if c, ok := cfg.DiskImage(u.Image); !ok || c.Validate != nil || c.Canary == nil {
		if v, err = Wanted(cfg, u.Image, u.Provider); err != nil {
			return nil, err
		}
	}
	b := image.Build(u.Build)
	if b == nil {
		return nil, fmt.Errorf("try upload %s: %w: its build is gone", u.Path(), ErrNotTried)
	}
	v.BuildCzxid = b.Stat.Czxid
	v.ExternalID, v.ExternalName, v.Format = u.ExternalID.Text(), u.ExternalName, u.Format
	v.Username, v.PythonPath, v.ShellType = u.Username, u.PythonPath, u.ShellType
	return v, nil
}
