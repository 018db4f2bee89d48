package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/terminal"
	"poolkeeper/configs"
	"poolkeeper/configs/kit"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/backup"
)

// ExportImageDataCmd writes the records of images into a file.
type ExportImageDataCmd struct {
	Partial bool   `help:"Write the file also where part of the tree cannot be read."`
	Path    string `arg:"" help:"The file; one that is there is replaced."`
}

// Help is what the command's own help says.
func (*ExportImageDataCmd) Help() string {
	return "Writes builds, uploads, pauses and requests for builds, as they stand in ZooKeeper, into a file that " +
		"import-image-data reads, and Nodepool's import-image-data. It has no nodes and no requests for nodes."
}

// Run is the command.
func (c *ExportImageDataCmd) Run(ctx context.Context, a *app.App) error {
	file, err := regular(c.Path)
	if err != nil {
		return err
	}
	return a.Reads().WithStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		data, unread, err := backup.Read(ctx, store.Session())
		if err != nil {
			return err
		}
		for _, why := range unread {
			fmt.Fprintln(terminal.Visible(a.Stderr), "poolkeeper:", why)
		}
		if len(unread) > 0 && !c.Partial {
			return fmt.Errorf("%s is not written: %d records or lists of them cannot be read; with --partial, it has the others", c.Path, len(unread))
		}
		if data, err = data.WithIDs(ctx, store.Session()); err != nil {
			return err
		}
		text, err := data.Encode()
		if err != nil {
			return err
		}
		if err := kit.ReplaceFile(file, text); err != nil {
			return fmt.Errorf("write %s: %w", c.Path, err)
		}
		_, err = fmt.Fprintf(a.Stdout, "Wrote %s to %s\n", data.Counts(), c.Path)
		return err
	})
}

// regular is the file at a path that is to be replaced, behind links.
func regular(path string) (string, error) {
	file, err := filepath.EvalSymlinks(path)
	if target, _ := os.Readlink(path); errors.Is(err, os.ErrNotExist) && target == "" { // a link to nothing is none of ours
		return path, nil
	}
	if err != nil {
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is there, and is not a regular file")
	}
	if err != nil {
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	return file, nil
}

// ImportImageDataCmd brings the records of images back.
type ImportImageDataCmd struct {
	DryRun bool   `help:"Print what would be written, and write nothing."`
	Force  bool   `help:"Also while daemons run, and into a tree that has other records. What it has stays as it is."`
	Path   string `arg:"" help:"The file, of export-image-data or of Nodepool's."`
}

// Help is what the command's own help says.
func (*ImportImageDataCmd) Help() string {
	return "Brings builds, uploads, pauses and requests for builds back into ZooKeeper, of a file that export-image-data or Nodepool's " +
		"has written. Stop all builders and launchers before. Nothing that the tree has is changed; an import that was " +
		"cut short is given again."
}

// Run is the command.
func (c *ImportImageDataCmd) Run(ctx context.Context, a *app.App) error {
	text, err := os.ReadFile(c.Path)
	if err != nil {
		return err
	}
	data, err := backup.Parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Path, err)
	}
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		if c.DryRun {
			return c.tell(ctx, a, store, data)
		}
		look, err := backup.Restore(ctx, store, data, c.Force)
		if err != nil {
			return unwritten(err, look, c.Force, "import", c.Path, cfg)
		}
		fmt.Fprintf(a.Stdout, "Imported %s; %d records were there already\n", look.Missing.Counts(), look.Same)
		return errors.Join(errors.Join(look.Left...), warnStale(ctx, a, store))
	})
}

// warnStale prints a line for each verdict and pin that is not in force after an import.
func warnStale(ctx context.Context, a *app.App, store *zkmodel.Store) error {
	images, err := store.Images(ctx)
	if err != nil {
		return err
	}
	for _, image := range images {
		for _, one := range image.Stale() {
			fmt.Fprintf(terminal.Visible(a.Stderr), "poolkeeper: image %s: %s\n", image.Name, one)
		}
	}
	return nil
}

// unwritten is err, with what it has left of a tree into which a file was to be brought. Unless something was in the
// way before, some of the file may have been written.
func unwritten(err error, before interface{ InTheWay() error }, force bool, verb, file string, cfg *configs.Config) error {
	if errors.Is(err, backup.ErrInTheWay) && !force && before.InTheWay() != nil {
		return errors.Join(err, fmt.Errorf("nothing of %s is written into the ZooKeeper of %s; --dry-run prints what is missing there, --force adds it all the same", file, cfg.Path))
	}
	return fmt.Errorf("%s %s: %w; what is written stays, and the same command goes on", verb, file, err)
}

// tell prints what would be written, and what is in the way.
func (c *ImportImageDataCmd) tell(ctx context.Context, a *app.App, store *zkmodel.Store, data backup.Data) error {
	look, err := backup.Compare(ctx, store, data)
	if err != nil {
		return err
	}
	out := terminal.Visible(a.Stdout)
	for _, path := range slices.Sorted(maps.Keys(look.Missing)) {
		fmt.Fprintln(out, path)
	}
	fmt.Fprintf(out, "To import: %s; %d records are there already\n", look.Missing.Counts(), look.Same)
	var inTheWay error
	if !c.Force {
		inTheWay = look.InTheWay()
	}
	return errors.Join(inTheWay, errors.Join(look.Left...))
}
