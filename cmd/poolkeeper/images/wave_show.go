package images

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// waveListCmd lists waves.
type waveListCmd struct {
	view.Flags
	view.Watching
	view.ByState
}

// Run is the command.
func (c waveListCmd) Run(ctx context.Context, a *app.App) error {
	return withWaves(ctx, a.Reads(), func(ctx context.Context, t waveTools) error {
		states := view.States(c.ByState, wave.States()...)
		if c.Watch {
			return c.Follow(t.outer, a, t.client, view.Watched{ //nolint:contextcheck // outlives a session
				Roots: []view.Root{{Path: wave.Root, Filter: wave.Followed("")}},
				Read: func(ctx context.Context, _ *zkmodel.Mirror, s *recipe.Session, _ time.Time) (*listing.Table, error) {
					list, err := wave.NewStore(s).Waves(ctx)
					return listing.Waves(list), err
				},
			}, states)
		}
		list, err := t.store.Waves(ctx)
		if err != nil {
			return err
		}
		word, held, err := t.store.AllHeld(ctx)
		if err != nil {
			return err
		}
		if held {
			fmt.Fprintf(a.Stderr, "poolkeeper: all waves are held %s; wave release --all goes on\n", listing.Visible(word.String()))
		}
		return c.Show(a, listing.Waves(list), states)
	})
}

// waveShowCmd shows one wave.
type waveShowCmd struct {
	State  []string `placeholder:"STATE" help:"Only jobs in this state. May be given again."`
	Limit  int      `default:"50" help:"How many jobs to show; of the others nothing is read (${default})."`
	Report bool     `help:"The report of a wave that is over, with all its jobs."`
	Wait   bool     `help:"Wait for the report first. Exit code 1 unless all is completed."`
	ID     string   `arg:"" help:"The wave."`
	view.Forms
	view.Watching
}

// Run is the command.
func (c waveShowCmd) Run(ctx context.Context, a *app.App) error {
	states := wave.States()
	if len(c.State) > 0 {
		states = nil
	}
	for _, name := range c.State {
		if !wave.State(name).Known() {
			return fmt.Errorf("--state %q: expected one of %s", name, stateNames())
		}
		states = append(states, wave.State(name))
	}
	return withWave(ctx, a.Reads(), c.ID, func(ctx context.Context, t waveTools, e *wave.Entry) error {
		if c.Wait {
			return awaitWave(t.outer, a, t.client, c.ID, c.Forms) //nolint:contextcheck // outlives a session
		}
		if c.Report {
			return c.report(ctx, a, t)
		}
		if c.Watch {
			return c.follow(a, t, states)
		}
		rows, all, err := t.rows(ctx, c, states)
		if err != nil {
			return err
		}
		if err := c.printJobs(a, e, listing.WaveJobs(rows)); err != nil {
			return err
		}
		if all > len(rows) && c.InText() {
			fmt.Fprintf(a.Stdout, "%d more jobs are not shown (--limit)\n", all-len(rows))
		}
		return nil
	})
}

// follow shows the jobs, and what changes of them.
func (c waveShowCmd) follow(a *app.App, t waveTools, states []wave.State) error {
	return view.Flags{Forms: c.Forms}.Follow(t.outer, a, t.client, view.Watched{
		Parts: zkmodel.PartImages, // they say what jobs wait for
		Roots: []view.Root{{Path: wave.Root, Filter: wave.Followed(c.ID)}},
		Read: func(ctx context.Context, _ *zkmodel.Mirror, s *recipe.Session, _ time.Time) (*listing.Table, error) {
			t.models, t.store = zkmodel.NewStore(s, nil), wave.NewStore(s)
			rows, _, err := t.rows(ctx, c, states)
			return listing.WaveJobs(rows), err
		},
	})
}

// rows reads jobs of a wave, and how many there are.
func (t waveTools) rows(ctx context.Context, c waveShowCmd, states []wave.State) ([]wave.Row, int, error) {
	rows, all, err := t.store.Rows(ctx, c.ID, states, c.Limit)
	if err == nil {
		err = t.explain(ctx, rows)
	}
	return rows, all, err
}

// printJobs prints a wave and those of its jobs that were read.
func (c waveShowCmd) printJobs(a *app.App, e *wave.Entry, jobs *listing.Table) error {
	if c.Output == "json" {
		return jobs.WriteJSON(a.Stdout)
	}
	of, err := listing.Waves([]*wave.Entry{e}).Items()
	if err != nil {
		return err
	}
	if c.InText() {
		printWave(a.Stdout, e)
	}
	v1 := struct {
		view.Head
		Wave json.RawMessage `json:"wave"`
	}{view.HeadOf("wave"), bytes.Trim(of, "[]")}
	return c.Parts(a, "", v1, view.Part{Key: "jobs", Table: jobs})
}

// explain says of jobs whose build is asked for what they wait for.
func (t waveTools) explain(ctx context.Context, rows []wave.Row) error {
	for i := range rows {
		if rows[i].State != wave.Processing || rows[i].Build != "" || rows[i].Note != "" {
			continue
		}
		image, err := t.models.Image(ctx, rows[i].Image)
		if err != nil && !errors.Is(err, zkmodel.ErrNotFound) {
			return err
		}
		rows[i].Note = "waits for a builder"
		if image != nil && image.BuildsLocked && len(image.Builds) > 0 {
			if b := image.Builds[len(image.Builds)-1]; b.State == zkmodel.BuildBuilding {
				rows[i].Note = "is being built on " + b.Builder
			}
		}
	}
	return nil
}

// report prints the report.
func (c waveShowCmd) report(ctx context.Context, a *app.App, t waveTools) error {
	data, err := t.store.Queue().Result(ctx, c.ID)
	if errors.Is(err, recipe.ErrNoNode) { // it is not over, or is retried
		if data, err = t.store.Queue().Earlier(ctx, c.ID); err == nil && c.InText() {
			fmt.Fprintf(a.Stderr, "Wave %s is being retried; this is the report from before:\n", c.ID)
		}
	}
	if errors.Is(err, recipe.ErrNoNode) {
		return fmt.Errorf("wave %s is not over: there is no report yet", c.ID)
	}
	if err != nil {
		return err
	}
	report, err := wave.ParseReport(data)
	if err != nil {
		return err
	}
	return printReport(a, c.Forms, report)
}

// printWave tells of a wave in words.
func printWave(out io.Writer, e *wave.Entry) {
	fmt.Fprintf(out, "Wave %s is %s: %s\n", e.ID, e.Status.State, counted(e.Status.Counts))
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(out, "  %-8s %s\n", name, listing.Visible(text))
		}
	}
	line("made", e.Stat.Ctime.UTC().Format(time.RFC3339)+" by "+e.By)
	line("reason", e.Reason)
	line("priority", precedence(e))
	line("note", e.Status.Note)
	line("driver", e.Status.Driver)
	line("estimate", e.Status.Estimate.String())
}

// precedence is the priority of a wave, and of the jobs that were given one.
func precedence(e *wave.Entry) string {
	text := []string{string(e.Precedence())}
	if word, changed := e.Marks[wave.MarkPriority]; changed {
		text[0] += ", given " + word.String()
	}
	for _, mark := range slices.Sorted(maps.Keys(e.Marks)) {
		if image := mark.Job(); image != "" && mark == wave.MarkPriority.Of(image) {
			text = append(text, fmt.Sprintf("job %s is %s", image, e.Marks[mark].Priority))
		}
	}
	return strings.Join(text, "; ")
}

// counted are the jobs by state, in words.
func counted(counts map[wave.State]int) string {
	var parts []string
	for _, state := range wave.States() {
		if n := counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}

func stateNames() string {
	var names []string
	for _, state := range wave.States() {
		names = append(names, string(state))
	}
	return strings.Join(names, ", ")
}

// unknown is the error for a wave that is not there, with the one that was meant.
func (t waveTools) unknown(ctx context.Context, id string) error {
	ids, err := t.store.Queue().IDs(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(ids, id) {
		return fmt.Errorf("wave %s is incomplete: its request exists, and its params do not", id)
	}
	return fmt.Errorf("there is no wave %s%s", id, configs.Similar(id, ids))
}

// withWave runs a command's body on one wave.
func withWave(ctx context.Context, a *app.App, id string, body func(context.Context, waveTools, *wave.Entry) error) error {
	if err := wave.CheckID(id); err != nil {
		return err
	}
	return withWaves(ctx, a, func(ctx context.Context, t waveTools) error {
		e, err := t.store.Wave(ctx, id)
		if errors.Is(err, zkmodel.ErrNotFound) {
			return t.unknown(ctx, id)
		}
		if err != nil {
			return err
		}
		return body(ctx, t, e)
	})
}
