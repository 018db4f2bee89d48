package configs

import (
	"cmp"
	"fmt"
	"os"
	"os/user"

	"gopkg.in/yaml.v3"
)

// Options say how Load reads a configuration. The zero value is how a daemon
// reads it that has no secure file.
type Options struct {
	// SecurePath names the file with the secrets; "" has none.
	SecurePath string
	// Env looks up a variable of the environment: what %(NODEPOOL_X) stands
	// for, HOME, and where clouds.yaml is. Nil is the process's, whose HOME is
	// looked up in the system's list of users when it is not set.
	Env func(name string) (value string, found bool)
	// Validate is how config-validate reads: what Nodepool's validator refuses
	// is an error, not a warning: unknown keys above all.
	Validate bool
	// Strict is Validate for a gate: keys given twice, drivers that we lack and
	// what cannot work are errors, too.
	Strict bool
	// Keyless passes over sealed values for which there is no key: a check elsewhere than
	// on the hosts that have it.
	Keyless bool
	// Places remembers where keys stand, for Config.Finding.
	Places bool
	// Text is what the configuration says, when that has been read already; nil reads it.
	// Without HostPath it is one that is to be pushed, which need not name ZooKeeper.
	Text []byte
	// HostPath names the file with what is the host's own, and wins over the configuration,
	// which is the fleet's then: it does not say where ZooKeeper is. "" has none.
	HostPath string
	// lastGood names the stored copy that Load reads instead of the file; "" reads the file.
	lastGood string
}

// stopsAt is the least severity that stops a configuration.
func (o Options) stopsAt() severity {
	switch {
	case o.Strict:
		return lint
	case o.Validate:
		return refused
	}
	return fault
}

// Load reads a configuration in Nodepool's format, resolves what images
// inherit, fills in the defaults and checks it. The error joins a *Finding for
// everything that is wrong (errors.Is ErrInvalid), or says why a file could
// not be read.
func Load(path string, opts Options) (*Config, error) {
	config, _, err := Check(path, opts)
	return config, err
}

// Check is Load for who wants the warnings beside the errors: those of Config,
// which there is not when there is an error.
func Check(path string, opts Options) (config *Config, warnings []string, err error) {
	l := newLoader(opts)
	err = l.load(path)
	warnings = l.found.warningTexts()
	if err != nil {
		return nil, warnings, err
	}
	l.cfg.Warnings = warnings
	l.cfg.inputs, l.cfg.doubts, l.cfg.opened = l.inputs, l.doubts, l.sealed.values
	return l.cfg, warnings, nil
}

// load reads the files into l.cfg.
func (l *loader) load(path string) error {
	opts := l.opts
	if opts.Places {
		l.cfg.places = map[string]int{}
	}
	l.cfg.Path, l.cfg.SecurePath, l.cfg.HostPath = path, opts.SecurePath, opts.HostPath
	main, host := opts.Text, []byte(nil)
	var err error
	if main == nil {
		if main, err = l.read(cmp.Or(opts.lastGood, path)); err != nil {
			return fmt.Errorf("read configuration: %w", err)
		}
	}
	if opts.HostPath != "" {
		if host, err = l.read(opts.HostPath); err != nil {
			return fmt.Errorf("read host file: %w", err)
		}
	}
	if opts.SecurePath != "" {
		secure, err := l.read(opts.SecurePath)
		if err != nil {
			return fmt.Errorf("read secure file: %w", err)
		}
		l.decodeSecure(opts.SecurePath, secure)
	}
	ok := l.decodeMain(path, main)
	if opts.HostPath != "" {
		l.decodeHost(opts.HostPath, host)
	}
	if ok {
		l.finish()
	}
	return l.found.err()
}

// loader is the state of one Load.
type loader struct {
	opts   Options
	cfg    *Config
	found  findings
	inputs inputs
	secure secureFile
	images imageSet
	checks []func() // run when everything has been read
	// localDirs are the directories of the embedded providers, by name.
	localDirs map[string]string
	clouds    map[string]value // where each provider names its cloud
	sections  map[string]*section
	left      map[string]*Finding // what is wrong with items that are left out, by their place
	noUploads map[string]string   // why nothing can be uploaded to a provider
	// meant are the unknown keys of a mapping by what was probably meant.
	meant  map[*yaml.Node]map[string]*Finding
	watch  *observer
	doubts doubts
	sealed sealedValues
}

func newLoader(opts Options) *loader {
	if opts.Env == nil {
		opts.Env = processEnv
	}
	return &loader{
		opts: opts, cfg: defaultConfig(), doubts: newDoubts(),
		found: findings{stopsAt: opts.stopsAt()}, inputs: inputs{},
		secure: secureFile{envVars: map[string]EnvVars{}, sinks: map[string]string{}, hooks: map[string]string{}},
		images: imageSet{byName: map[string]*rawImage{}}, localDirs: map[string]string{},
		clouds: map[string]value{}, sections: map[string]*section{},
		left: map[string]*Finding{}, noUploads: map[string]string{},
		meant:  map[*yaml.Node]map[string]*Finding{},
		sealed: sealedValues{opened: map[sealedAt]*yaml.Node{}},
	}
}

// processEnv is os.LookupEnv with a home for everybody: a service of systemd, or a
// job of cron's, has no HOME, and ~ means a folder there, too.
func processEnv(name string) (value string, found bool) {
	value, found = os.LookupEnv(name)
	if name != "HOME" || value != "" {
		return value, found
	}
	if us, err := user.Current(); err == nil && us.HomeDir != "" {
		return us.HomeDir, true
	}
	return value, found
}

func (l *loader) env(name string) (string, bool) { return l.opts.Env(name) }

// decodeMain reads the main file. It is false when there is nothing to go on
// with, and what refers to it cannot be judged.
func (l *loader) decodeMain(path string, content []byte) bool {
	src := &source{load: l, file: path}
	root, ok := src.parse(content)
	if !ok {
		if src.broken {
			return false
		}
		// Taking nothing for "no image, no provider" would erase a site whose
		// file is being written at this moment.
		l.found.add(fault, Finding{File: path, Message: "the file holds no configuration"})
		return false
	}
	l.found.unknownIsFault = root.peek("unknown-keys") == "error"
	root.decode("configuration", l.topKeys())
	return true
}

// finish settles what needs all files: inheritance, and what refers to other
// parts of the configuration.
func (l *loader) finish() {
	l.resolveImages()
	l.overlaySecure()
	l.skipUnsupported()
	for _, check := range l.checks {
		check()
	}
	l.reportMissing()
	l.checkSealedClouds()
	l.freeze()
	l.checkZooKeeper()
	l.fillImageFormats()
}

// observer is told which keys there are and which of them a file has. Only
// tests have one.
type observer struct {
	known func(kind, key string)
	used  func(kind, key string)
}

func (l *loader) observe(kind string, schema fields) {
	if l.watch == nil {
		return
	}
	for key := range schema {
		l.watch.known(kind, key)
	}
}

func (l *loader) observed(kind, key string) {
	if l.watch != nil {
		l.watch.used(kind, key)
	}
}
