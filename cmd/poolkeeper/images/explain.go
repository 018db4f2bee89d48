package images

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"poolkeeper/builder"
	"poolkeeper/builder/plan"
	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/terminal"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// ExplainCmd shows the state of images' builds and uploads, the rule that decides it, and how this host's
// guests run.
type ExplainCmd struct {
	view.Report
	All    bool     `help:"Print every rule and its verdict, not only those that decide."`
	Images []string `arg:"" optional:"" name:"image" help:"The images; by default all."`
}

// Run is the command.
func (c ExplainCmd) Run(ctx context.Context, a *app.App) error {
	return withExplanations(ctx, a, c.Images, func(cfg *configs.Config, all []builder.Explanation) error {
		var guests []guestsExplained
		if len(c.Images) == 0 {
			guests = explainGuests(cfg)
		}
		items := append(explanationsJSON(all), guestsJSON(guests)...)
		if printed, err := c.Document(a.Stdout, items, view.List[explanationJSON]{Head: view.HeadOf("explanations"), Items: items}); printed {
			return err
		}
		for i, e := range all {
			if i > 0 {
				fmt.Fprintln(a.Stdout)
			}
			if err := printExplanation(terminal.Visible(a.Stdout), e, foldAt(a.Stdout), c.All); err != nil {
				return err
			}
		}
		printGuests(a.Stdout, guests, len(all) == 0)
		return nil
	})
}

// DryRun prints what a builder on this host would do now.
func DryRun(ctx context.Context, a *app.App) error {
	return withExplanations(ctx, a, nil, func(cfg *configs.Config, all []builder.Explanation) error {
		if cfg.ImagesDir == "" { // the builder would not start either
			return fmt.Errorf("%s has no images-dir: this is not the configuration of a builder", cfg.Path)
		}
		for _, e := range all {
			printActions(terminal.Visible(a.Stdout), e, "", 0)
		}
		return nil
	})
}

// withExplanations passes on what a builder on this host has to do.
func withExplanations(ctx context.Context, a *app.App, images []string, show func(*configs.Config, []builder.Explanation) error) error {
	for _, image := range images {
		if err := configs.CheckName("image", image); err != nil {
			return err
		}
	}
	_, full, err := app.Hostnames(ctx)
	if err != nil {
		return err
	}
	return a.Reads().WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		all, err := builder.Explain(ctx, cfg, store, full, images...)
		if err != nil {
			return err
		}
		return show(cfg, all)
	})
}

// foldAt is where lines are folded: at the width of a terminal; 0 in a pipe, where they are whole.
func foldAt(out io.Writer) int {
	if _, _, ok := app.Screen(out); !ok {
		return 0
	}
	return app.Width(out)
}

// leastDetail is how wide the last column is; where there is less room, it stands below the others.
const leastDetail = 24

// printExplanation prints what decides about an image, or with all every verdict, and what follows from them, in
// lines of no more than a width; 0 is any.
func printExplanation(w io.Writer, e builder.Explanation, width int, all bool) error {
	fmt.Fprintf(w, "Image %s\n", e.Image)
	rows := [][]string{}
	for _, v := range e.Verdicts {
		if !v.Decides {
			continue
		}
		row := []string{v.Subject, fmt.Sprintf("%s: %s (%s)", v.Outcome(), v.Detail, v.Rule)}
		if v.Subject == "build" { // it comes first, also if a rule of the workers decides it
			rows = slices.Insert(rows, 0, row)
		} else {
			rows = append(rows, row)
		}
	}
	err := printRows(w, rows, width)
	printActions(w, e, "  to do: ", width)
	if !e.Next.IsZero() {
		fmt.Fprintf(w, "  next check: %s\n", e.Next.Local().Format(time.DateTime))
	}
	if !all || err != nil {
		return err
	}
	rows = [][]string{{"SUBJECT", "RULE", "VERDICT", "DETAIL"}}
	subject := ""
	for _, v := range e.Verdicts {
		name := v.Subject
		if name == subject {
			name = ""
		}
		subject = v.Subject
		rows = append(rows, []string{name, v.Rule, v.Speaks, v.Detail})
	}
	fmt.Fprintln(w)
	return printRows(w, rows, width)
}

// printRows prints rows in columns; the last column is folded to the width, or is below the others if it would have
// too little room.
func printRows(w io.Writer, rows [][]string, width int) error {
	if len(rows) == 0 {
		return nil
	}
	last := len(rows[0]) - 1
	room := width - 2
	for column := range last {
		widest := 0
		for _, r := range rows {
			widest = max(widest, len(r[column])+2)
		}
		room -= widest
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		first := "  " + strings.Join(r[:last], "\t")
		if width > 0 && room < leastDetail {
			const below = "      "
			fmt.Fprintf(table, "%s\n%s%s\n", first, below, strings.Join(listing.Folded(r[last], width-len(below)), "\n"+below))
			continue
		}
		lines := []string{r[last]}
		if width > 0 {
			lines = listing.Folded(r[last], room)
		}
		fmt.Fprintf(table, "%s\t%s\n", first, strings.Join(lines, "\n  "+strings.Repeat("\t", last)))
	}
	return table.Flush()
}

// printActions prints what is to be done, a line each; one that is wider than width is folded.
func printActions(w io.Writer, e builder.Explanation, prefix string, width int) {
	for _, action := range e.Actions {
		text := fmt.Sprintf("%s (%s)", describe(action), action.Why)
		if width > 0 {
			text = strings.Join(listing.Folded(text, max(leastDetail, width-len(prefix))), "\n"+strings.Repeat(" ", len(prefix)))
		}
		fmt.Fprintf(w, "%s%s\n", prefix, text)
	}
}

// describe says in words what an action does.
func describe(a plan.Action) string {
	build := a.Image + "-" + a.Build
	switch a.Kind {
	case plan.Build:
		return "build " + a.Image
	case plan.ClearRequest:
		return "clear the request for a build of " + a.Image
	case plan.Upload:
		return "upload " + build + " to " + a.Provider
	case plan.DeleteUpload, plan.ReclaimUpload:
		return "delete upload " + a.Upload + " of " + build + " at " + a.Provider
	case plan.MarkBuild:
		return "mark " + build + " for deletion"
	case plan.DeleteBuild:
		return "delete build " + build
	case plan.RemoveFiles:
		return "remove the files of " + build
	case plan.RemoveFormat:
		return "remove the " + a.Format + " file of " + build
	case plan.Adopt:
		return "adopt the files of " + build
	case plan.ForgetVerdicts:
		return "forget what was said of builds of " + a.Image + " that are gone"
	case plan.MoveLog:
		return "write down where the log of " + build + " is"
	}
	return a.Key()
}

// explanationJSON is an Explanation as scripts read it: of an image, or of the
// guests of a provider, then without an image.
type explanationJSON struct {
	Image    string        `json:"image"`
	Provider string        `json:"provider,omitempty"`
	Verdicts []verdictJSON `json:"verdicts"`
	Actions  []actionJSON  `json:"actions"`
	Next     *time.Time    `json:"next"`
}

type verdictJSON struct {
	Subject string `json:"subject"`
	Rule    string `json:"rule"`
	Verdict string `json:"verdict"`
	Detail  string `json:"detail"`
	Decides bool   `json:"decides,omitempty"` // it is the verdict that decides its subject
}

type actionJSON struct {
	Kind     plan.Kind `json:"kind"`
	Build    string    `json:"build,omitempty"`
	Provider string    `json:"provider,omitempty"`
	Upload   string    `json:"upload,omitempty"`
	Format   string    `json:"format,omitempty"`
	Why      string    `json:"why"`
}

func explanationsJSON(all []builder.Explanation) []explanationJSON {
	list := make([]explanationJSON, 0, len(all))
	for _, e := range all {
		one := explanationJSON{Image: e.Image, Verdicts: []verdictJSON{}, Actions: []actionJSON{}}
		for _, v := range e.Verdicts {
			one.Verdicts = append(one.Verdicts, verdictJSON{v.Subject, v.Rule, v.Speaks, v.Detail, v.Decides})
		}
		for _, a := range e.Actions {
			one.Actions = append(one.Actions, actionJSON{a.Kind, a.Build, a.Provider, a.Upload, a.Format, a.Why})
		}
		if !e.Next.IsZero() {
			next := e.Next.UTC()
			one.Next = &next
		}
		list = append(list, one)
	}
	return list
}
