package configs

import (
	"fmt"
	"os"
)

// Options say how Load reads a configuration. The zero value is how a daemon
// reads it that has no secure file.
type Options struct {
	// SecurePath names the file with the secrets; "" has none.
	SecurePath string
	// Env looks up a variable of the environment: what %(NODEPOOL_X) stands
	// for, HOME, and where clouds.yaml is. Nil is os.LookupEnv.
	Env func(name string) (value string, found bool)
	// Strict is how config-validate reads: unknown keys, keys given twice and
	// what cannot work are errors, not warnings.
	Strict bool
}

// Load reads a configuration in Nodepool's format, resolves what images
// inherit, fills in the defaults and checks it. The error joins a *Finding for
// everything that is wrong (errors.Is ErrInvalid), or says why a file could
// not be read.
func Load(path string, opts Options) (*Config, error) {
	l := newLoader(opts)
	l.cfg.Path, l.cfg.SecurePath = path, opts.SecurePath
	main, err := l.read(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if opts.SecurePath != "" {
		secure, err := l.read(opts.SecurePath)
		if err != nil {
			return nil, fmt.Errorf("read secure file: %w", err)
		}
		l.decodeSecure(opts.SecurePath, secure)
	}
	l.decodeMain(path, main)
	l.finish()
	if err := l.found.err(); err != nil {
		return nil, err
	}
	l.cfg.Warnings = l.found.warningTexts()
	l.cfg.inputs = l.inputs
	return l.cfg, nil
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
	watch     *observer
}

func newLoader(opts Options) *loader {
	if opts.Env == nil {
		opts.Env = os.LookupEnv
	}
	return &loader{
		opts: opts, cfg: defaultConfig(),
		found: findings{strict: opts.Strict}, inputs: inputs{},
		secure: secureFile{envVars: map[string]EnvVars{}},
		images: imageSet{byName: map[string]*rawImage{}}, localDirs: map[string]string{},
	}
}

func (l *loader) env(name string) (string, bool) { return l.opts.Env(name) }

func (l *loader) decodeMain(path string, content []byte) {
	src := &source{load: l, file: path}
	root, ok := src.parse(content)
	if !ok {
		if src.broken {
			return
		}
		// Taking nothing for "no image, no provider" would erase a site whose
		// file is being written at this moment.
		l.found.add(fault, Finding{File: path, Message: "the file holds no configuration"})
		return
	}
	l.found.unknownIsFault = root.peek("unknown-keys") == "error"
	root.decode("configuration", l.topKeys())
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
