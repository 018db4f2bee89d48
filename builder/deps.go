package builder

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/builder/actions"
	"poolkeeper/builder/dib"
	"poolkeeper/builder/plan"
	"poolkeeper/builder/step"
	"poolkeeper/builder/waves"
	"poolkeeper/configs"
	"poolkeeper/configs/redact"
	"poolkeeper/configs/statsd"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/trace"
)

// Deps is what a Builder is given. Client and Open are required.
type Deps struct {
	// Client reaches ZooKeeper. The builder does not close it.
	Client *recipe.Client
	// Open opens a configured provider. It is tried again after an error.
	Open func(configs.Provider) (providers.Provider, error)
	// Logger may be nil.
	Logger hclog.Logger
	// Registerer takes the metrics; nil keeps them to ourselves.
	Registerer prometheus.Registerer
	// Statsd is sent Nodepool's figures; nil is sent nothing.
	Statsd *statsd.Client
	// Tracer is told where the time of builds goes; nil is told nothing.
	Tracer *trace.Tracer
	// Now is the clock of records and schedules; nil is that of Client.
	Now func() time.Time
	// Hostname is the short name of this host, which its component record has;
	// FQDN the full one, which build records have.
	Hostname, FQDN string
	// Version is that of the program, for the component record.
	Version string
	// Arch is the architecture that images are built for here, as Go names it;
	// "" is that of the program.
	Arch string
	// BuildWorkers and UploadWorkers are how many builds and uploads run at
	// once; 0 is 1 and 4.
	BuildWorkers, UploadWorkers int
	// Host is the machine that commands run on; nil is this one.
	Host dib.Host
	// Guard is the command that calls dib.Guard; nil is this program with
	// dib.GuardCommand.
	Guard []string
	// Secrets are those that no reason and no hook may have; nil knows none.
	Secrets *redact.Secrets
	// Environ is the environment of which builds get a part; nil is ours.
	Environ []string
	// Policy is how long failures are waited out; the zero value is
	// plan.DefaultPolicy.
	Policy plan.Policy
	// Resync is how often everything is looked at although nothing has
	// changed; 0 is ten minutes.
	Resync time.Duration
	// HostEvery is how often this host is checked for whether it can build at all; 0
	// is a minute.
	HostEvery time.Duration
	// LeakAge is how long an image in a cloud must have had no record before it is
	// deleted, and how often clouds are searched for such, about; 0
	// is ten minutes.
	LeakAge time.Duration
	// Refresh, when set, is called before a build begins: if the configuration has
	// changed it calls Reload before it returns.
	Refresh func(context.Context)
	// Deciding, when set, is called before each decision, and done after it: a fleet's
	// configuration is switched between decisions. It returns when ctx ends.
	Deciding func(ctx context.Context) (done func())
	// Logs, when set, is told of build logs that are being written.
	Logs actions.Logs
	// LogURL, when set, says where a build's log can be read; it goes into the
	// build's record.
	LogURL func(image, build string) string
	// Process is told what this builder does for all; nil makes one of our own.
	Process *zkmodel.Process
	// Step, when set, is called at each step that changes the tree, the disk or
	// a cloud, before and after. It is for tests that crash us there.
	Step func(step.Step)
	// WaveStep is Step for who drives waves.
	WaveStep func(waves.Moment)
}

// noLogs tells nobody.
type noLogs struct{}

// Writing implements Logs.
func (noLogs) Writing(string, string) (grew, done func()) { return func() {}, func() {} }

// withDefaults checks what is required and fills in the rest.
func (d Deps) withDefaults() (Deps, error) {
	if d.Client == nil || d.Open == nil {
		return d, errors.New("make builder: client and providers are required")
	}
	if d.Logger == nil {
		d.Logger = hclog.NewNullLogger()
	}
	if d.Now == nil {
		d.Now = d.Client.Clock().Now
	}
	if d.Process == nil {
		d.Process = zkmodel.NewProcess(d.Now)
	}
	if d.Hostname == "" {
		name, err := os.Hostname()
		if err != nil {
			return d, err
		}
		d.Hostname, _, _ = strings.Cut(name, ".")
	}
	if d.FQDN == "" {
		d.FQDN = d.Hostname
	}
	d.whereBuilt()
	d.BuildWorkers = orElse(d.BuildWorkers, 1)
	d.UploadWorkers = orElse(d.UploadWorkers, 4)
	if d.Policy == (plan.Policy{}) {
		d.Policy = plan.DefaultPolicy()
	}
	if d.Resync == 0 {
		d.Resync = 10 * time.Minute
	}
	if d.HostEvery == 0 {
		d.HostEvery = time.Minute
	}
	if d.LeakAge == 0 {
		d.LeakAge = 10 * time.Minute
	}
	if d.Refresh == nil {
		d.Refresh = func(context.Context) {}
	}
	if d.Deciding == nil {
		d.Deciding = func(context.Context) func() { return func() {} }
	}
	if d.Logs == nil {
		d.Logs = noLogs{}
	}
	if d.LogURL == nil {
		d.LogURL = func(string, string) string { return "" }
	}
	if d.Step == nil {
		d.Step = func(step.Step) {}
	}
	return d, nil
}

// whereBuilt fills in what builds are made on.
func (d *Deps) whereBuilt() {
	if d.Arch == "" {
		d.Arch = runtime.GOARCH
	}
	if d.Host == nil {
		d.Host = dib.Here{}
	}
	if d.Environ == nil {
		d.Environ = os.Environ()
	}
}

func orElse(n, other int) int {
	if n > 0 {
		return n
	}
	return other
}
