// Package doctor is `poolkeeper doctor`: it looks at this host, at ZooKeeper, the daemons and the clouds,
// and says what is wrong and what helps. It changes nothing.
package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/zkmodel/listing"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	Good    Level = "ok"
	Warning Level = "warning" // it works, and will not for ever, or not for all
	Fault   Level = "fault"   // something does not work
)

// Finding is what a check has found.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	What   string `json:"what"`
	Remedy string `json:"remedy,omitempty"`
}

// Cmd is the command.
type Cmd struct {
	view.Report
	Host   string `name:"for" enum:"any,builder,launcher" default:"any" placeholder:"KIND" help:"What this host is to run: builder or launcher; by default what a host may lack is a warning."`
	Clouds bool   `default:"true" negatable:"" help:"Ask the clouds for all that the configuration names. --no-clouds does not."`
}

// Help is what the command's own help says.
func (*Cmd) Help() string {
	return "Checks the configuration, ZooKeeper (servers, TLS, rights, latency, clock), daemons, folders, disk space, tools, KVM and clouds with their certificates and credentials, as the user who gives " +
		"the command: use the daemons' one. It changes nothing. Each finding says what helps. Exit code 3 when there is any."
}

// report is the JSON.
type report struct {
	Version  string    `json:"version"`
	Time     time.Time `json:"time"`
	Findings []Finding `json:"findings"`
}

// Run is the command.
func (c Cmd) Run(ctx context.Context, a *app.App) error {
	d := &doctor{host: c.Host, now: time.Now, slow: slowAnswer}
	d.examine(ctx, a, c.Clouds)
	for n := range d.found {
		f := &d.found[n]
		f.What = listing.Visible(strings.ReplaceAll(a.Secrets.Text(f.What), "\n", "; "))
	}
	document := report{"v1", time.Now().UTC().Truncate(time.Second), d.found}
	printed, err := c.Document(a.Stdout, document, document)
	if err != nil {
		return err
	}
	if !printed {
		d.print(a)
	}
	if d.worst() != Good {
		return app.ExitAttention
	}
	return nil
}

// doctor is one examination.
type doctor struct {
	host  string // builder, launcher or any
	now   func() time.Time
	slow  time.Duration // an answer of ZooKeeper that takes longer
	found []Finding
}

// good, warn and fault note what a check has found.
func (d *doctor) good(check, format string, args ...any) {
	d.found = append(d.found, Finding{Check: check, Level: Good, What: fmt.Sprintf(format, args...)})
}

func (d *doctor) warn(check, remedy, format string, args ...any) {
	d.found = append(d.found, Finding{check, Warning, fmt.Sprintf(format, args...), remedy})
}

func (d *doctor) fault(check, remedy, format string, args ...any) {
	d.found = append(d.found, Finding{check, Fault, fmt.Sprintf(format, args...), remedy})
}

// lacks notes what only a kind of daemon needs: a fault where this host is to run that one.
func (d *doctor) lacks(kind, check, remedy, format string, args ...any) {
	switch d.host {
	case kind:
		d.fault(check, remedy, format, args...)
	case "any":
		d.warn(check, remedy, format, args...)
	}
}

// worst is the level of the worst finding.
func (d *doctor) worst() Level {
	worst := Good
	for _, f := range d.found {
		if f.Level == Fault || worst == Good {
			worst = f.Level
		}
		if worst == Fault {
			break
		}
	}
	return worst
}

// examine does all checks. What one finds keeps no other from looking.
func (d *doctor) examine(ctx context.Context, a *app.App, clouds bool) {
	cfg := d.configuration(ctx, a)
	if cfg == nil {
		return
	}
	d.secrets(cfg)
	d.certificates(cfg.ZooKeeper.TLS)
	d.servers(ctx, cfg.ZooKeeper)
	d.session(ctx, a, cfg)
	d.folders(cfg)
	d.tools(cfg)
	d.guests(cfg)
	if clouds {
		d.clouds(ctx, a, cfg)
	}
}

// configuration loads the configuration, and tells what is wrong with it.
func (d *doctor) configuration(ctx context.Context, a *app.App) *configs.Config {
	const remedy = "mend the file at that line; config-validate tells more"
	cfg, err := a.ConfigWithPlaces(ctx)
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			d.fault("configuration", remedy, "%s", line)
		}
		if a.OfFleet() {
			return nil
		}
		return a.LastGood(err, configs.Options{SecurePath: a.Flags.Secure, Places: true})
	}
	for _, line := range cfg.Warnings {
		d.warn("configuration", remedy, "%s", line)
	}
	if len(cfg.Warnings) == 0 {
		d.good("configuration", "%s: %d images, %d providers", cfg.Path, len(cfg.DiskImages), len(cfg.Providers))
	}
	return cfg
}

// clouds asks the clouds, by reading calls only.
func (d *doctor) clouds(ctx context.Context, a *app.App, cfg *configs.Config) {
	asked, ends, err := app.CheckClouds(ctx, cfg, a.Logger(hclog.Off), &a.Secrets)
	if asked == 0 {
		return
	}
	for _, provider := range slices.Sorted(maps.Keys(ends)) {
		d.ends(provider, ends[provider])
	}
	if err == nil {
		d.good("clouds", "%d clouds have all that is named", asked)
		return
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		remedy := "name what the cloud has, or make it there"
		if strings.Contains(line, "cannot be asked") {
			remedy = "look at the cloud's entry in clouds.yaml (auth_url, credentials, region), and at the way to it"
		}
		d.fault("clouds", remedy, "%s", line)
	}
}

// ends looks at when certificates and credentials of a provider end.
func (d *doctor) ends(provider string, ends []providers.End) {
	for _, end := range ends {
		check, remedy := "credentials", "make new ones in the cloud, and put them into clouds.yaml: they are read at the next log-in"
		if end.Use.IsCertificate() {
			check, remedy = "tls", "put a new one in its place, and restart the daemons where clouds.yaml names the file"
		}
		what := fmt.Sprintf("provider %s: %s %s", provider, end.Use, end.Name)
		d.end(check, remedy, what, end.At)
	}
}

// end says of something whether it has ended, or ends soon.
func (d *doctor) end(check, remedy, what string, at time.Time) {
	day := at.UTC().Format(time.DateOnly)
	switch left := at.Sub(d.now()); {
	case left < 0:
		d.fault(check, remedy, "%s has ended on %s", what, day)
	case left < endsSoon:
		d.warn(check, remedy, "%s ends on %s", what, day)
	default:
		d.good(check, "%s is good until %s", what, day)
	}
}

// print prints the findings, the worst first.
func (d *doctor) print(a *app.App) {
	counts := map[Level]int{}
	for _, level := range []Level{Fault, Warning, Good} {
		for _, f := range d.found {
			if f.Level != level {
				continue
			}
			counts[level]++
			fmt.Fprintf(a.Stdout, "%-8s %-14s %s\n", f.Level, f.Check, f.What)
			if f.Remedy != "" {
				fmt.Fprintf(a.Stdout, "%-23s -> %s\n", "", f.Remedy)
			}
		}
	}
	fmt.Fprintf(a.Stdout, "%d faults, %d warnings\n", counts[Fault], counts[Warning])
}
