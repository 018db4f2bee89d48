package images

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"poolkeeper/builder"
	"poolkeeper/builder/plan"
	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/terminal"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// ExplainCmd tells what the builder of this host does with images, and how its
// guests run, and why.
type ExplainCmd struct {
	app.OutputFlags
	Images []string `arg:"" optional:"" name:"image" help:"The images; by default all."`
}

// Run is the command.
func (c ExplainCmd) Run(ctx context.Context, a *app.App) error {
	return withExplanations(ctx, a, c.Images, func(cfg *configs.Config, all []builder.Explanation) error {
		var guests []guestsExplained
		if len(c.Images) == 0 {
			guests = explainGuests(cfg)
		}
		if c.Output == "json" {
			return app.PrintJSON(a.Stdout, append(explanationsJSON(all), guestsJSON(guests)...))
		}
		for i, e := range all {
			if i > 0 {
				fmt.Fprintln(a.Stdout)
			}
			if err := printExplanation(terminal.Visible(a.Stdout), e); err != nil {
				return err
			}
		}
		printGuests(a.Stdout, guests, len(all) == 0)
		return nil
	})
}

// DryRun prints what a builder on this host would do now.
func DryRun(ctx context.Context, a *app.App) error {
	return withExplanations(ctx, a, nil, func(_ *configs.Config, all []builder.Explanation) error {
		for _, e := range all {
			printActions(terminal.Visible(a.Stdout), e, "")
		}
		return nil
	})
}

// withExplanations asks what a builder on this host has to do.
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
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		if cfg.ImagesDir == "" { // the builder would not start either
			return fmt.Errorf("%s has no images-dir: this is not the configuration of a builder", cfg.Path)
		}
		all, err := builder.Explain(ctx, cfg, store, full, images...)
		if err != nil {
			return err
		}
		return show(cfg, all)
	})
}

// printExplanation prints the verdicts on an image, and what follows from them.
func printExplanation(w io.Writer, e builder.Explanation) error {
	fmt.Fprintf(w, "Image %s\n", e.Image)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	subject := ""
	for _, v := range e.Verdicts {
		if v.Subject == subject {
			v.Subject = ""
		} else {
			subject = v.Subject
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", v.Subject, v.Rule, v.Speaks, v.Detail)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	printActions(w, e, "  to do: ")
	if len(e.Actions) == 0 {
		fmt.Fprintln(w, "  to do: nothing")
	}
	if !e.Next.IsZero() {
		fmt.Fprintf(w, "  next look: %s\n", e.Next.Local().Format(time.DateTime))
	}
	return nil
}

// printActions prints what is to be done, a line each.
func printActions(w io.Writer, e builder.Explanation, prefix string) {
	for _, action := range e.Actions {
		fmt.Fprintf(w, "%s%s (%s)\n", prefix, describe(action), action.Why)
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
			one.Verdicts = append(one.Verdicts, verdictJSON{v.Subject, v.Rule, v.Speaks, v.Detail})
		}
		for _, a := range e.Actions {
			one.Actions = append(one.Actions, actionJSON{a.Kind, a.Build, a.Provider, a.Upload, a.Format, a.Why})
		}
		if !e.Next.IsZero() {
			one.Next = &e.Next
		}
		list = append(list, one)
	}
	return list
}
