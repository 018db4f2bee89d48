package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/terminal"
	"poolkeeper/configs"
	"poolkeeper/configs/kit"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/backup"
)

// BackupCmd writes what of a tree nobody can make again into a file.
type BackupCmd struct {
	Path string `arg:"" help:"The file; one that is there is replaced."`
}

// Help is what the command's own help says.
func (*BackupCmd) Help() string {
	return "Writes the records of images and what stands below /poolkeeper since people said it or to outlive daemons (the installation's id, pauses, " +
		"verdicts, canaries, the fleet's configuration, waves that are over, schedules, hooks, sources) into a file that restore reads. It has no nodes, " +
		"no requests for nodes and no events. Sealed secrets stay sealed; the file is for its owner alone."
}

// Run is the command.
func (c *BackupCmd) Run(ctx context.Context, a *app.App) error {
	file, err := regular(c.Path)
	if err != nil {
		return err
	}
	return a.Reads().WithStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		whole, err := backup.ReadWhole(ctx, store.Session())
		if err != nil {
			return fmt.Errorf("%s is not written: %w", c.Path, err)
		}
		whole.Time, whole.By = time.Now().UTC().Truncate(time.Second), app.Requestor()
		text, err := whole.Encode()
		if err == nil {
			_, err = backup.ParseWhole(text) // what restore would refuse is no backup
		}
		if err != nil {
			return fmt.Errorf("%s is not written: %w", c.Path, err)
		}
		if err := kit.ReplaceFile(file, text); err != nil {
			return fmt.Errorf("write %s: %w", c.Path, err)
		}
		underWay(a.Stderr, whole)
		_, err = fmt.Fprintf(a.Stdout, "Wrote %s, and %d records of Poolkeeper's own to %s\n", whole.Images().Counts(), whole.Own(), c.Path)
		return err
	})
}

// underWay tells of waves that a backup does not have.
func underWay(out io.Writer, whole *backup.Whole) {
	if len(whole.UnderWay) > 0 {
		fmt.Fprintf(terminal.Visible(out), "poolkeeper: waves that are under way are not in it: %s\n", strings.Join(whole.UnderWay, ", "))
	}
}

// RestoreCmd brings a backup back.
type RestoreCmd struct {
	DryRun bool   `help:"Print what would be written, and write nothing."`
	Force  bool   `help:"Also while daemons run, and into a tree that has other records. What it has stays as it is."`
	Path   string `arg:"" help:"The file, of backup."`
}

// Help is what the command's own help says.
func (*RestoreCmd) Help() string {
	return "Brings back what backup has written. Stop all builders and launchers before, and start them when it has ended. Nothing that the tree has " +
		"is changed; a restore that was cut short is given again."
}

// Run is the command.
func (c *RestoreCmd) Run(ctx context.Context, a *app.App) error {
	text, err := os.ReadFile(c.Path)
	if err != nil {
		return err
	}
	whole, err := backup.ParseWhole(text)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Path, err)
	}
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		if c.DryRun {
			return c.tell(ctx, a, store, whole)
		}
		b, err := backup.RestoreWhole(ctx, store, whole, c.Force)
		if err != nil {
			return unwritten(err, b, c.Force, "restore", c.Path, cfg)
		}
		underWay(a.Stderr, whole)
		fmt.Fprintf(a.Stdout, "Restored %s, and %d records of Poolkeeper's own, of %s; %d records were there already\n",
			b.Images.Missing.Counts(), len(b.Missing), whole.Time.Format(time.RFC3339), b.Images.Same+b.Same)
		return errors.Join(b.Images.Left...)
	})
}

// tell prints what would be written, and what is in the way.
func (c *RestoreCmd) tell(ctx context.Context, a *app.App, store *zkmodel.Store, whole *backup.Whole) error {
	b, err := backup.CompareWhole(ctx, store, whole)
	if err != nil {
		return err
	}
	paths := slices.Collect(maps.Keys(b.Images.Missing))
	for _, r := range b.Missing {
		paths = append(paths, r.Path)
	}
	slices.Sort(paths)
	out := terminal.Visible(a.Stdout)
	for _, path := range paths {
		fmt.Fprintln(out, path)
	}
	fmt.Fprintf(out, "To restore: %s, and %d records of Poolkeeper's own; %d records are there already\n",
		b.Images.Missing.Counts(), len(b.Missing), b.Images.Same+b.Same)
	var inTheWay error
	if !c.Force {
		inTheWay = b.InTheWay()
	}
	return errors.Join(inTheWay, errors.Join(b.Images.Left...))
}
