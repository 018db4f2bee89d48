package configs

import "slices"

// Hook is what others can tell this site of, by a request that they sign, and the wave
// that it makes.
type Hook struct {
	Wave // Schedule is ""
	// Events are patterns of what is told, as the header X-GitHub-Event names it; none is all.
	Events []string
	// Refs are patterns of branches and tags, refs/heads/main; none is all.
	Refs []string
	// Secret signs what comes; it is the secure file's. A hook without one is not served.
	Secret string `json:"-" yaml:"-"`
}

// String shows no secret.
func (h Hook) String() string { return "{" + h.Name + "}" }

// GoString is String, so that %#v shows no secret either.
func (h Hook) GoString() string { return h.String() }

// hook decodes one hook.
func (l *loader) hook(v value) Hook {
	h := Hook{Wave: defaultWave()}
	keys := h.keys("hook")
	keys["events"], keys["refs"] = eventPatterns(&h.Events), eventPatterns(&h.Refs)
	have := v.decode("hook", keys)
	v.require(have, "name")
	l.checkWave(v, have, h.Wave)
	v.later(func() {
		if _, given := l.secure.hooks[h.Name]; !given && have["name"] && l.opts.SecurePath != "" {
			v.report(refused, "%s has no secret for the hook %q; it is not served", l.opts.SecurePath, h.Name)
		}
	})
	return h
}

// secureHooks decodes the secrets of hooks.
func (l *loader) secureHooks(v value) {
	for _, item := range v.items() {
		item.item = item.at
		var name, secret string
		have := item.decode("secure hook", fields{"name": text(&name), "secret": eventKey(&secret)})
		item.require(have, "name", "secret")
		l.secure.hooks[name] = secret
		item.later(func() {
			if have["name"] && !slices.ContainsFunc(l.cfg.Hooks, func(h Hook) bool { return h.Name == name }) {
				item.fail("the configuration has no hook %q", name)
			}
		})
	}
}

// overlayHooks gives hooks their secrets. One whose secret cannot be read has none.
func (l *loader) overlayHooks() {
	for i := range l.cfg.Hooks {
		l.cfg.Hooks[i].Secret = l.secure.hooks[l.cfg.Hooks[i].Name]
	}
}
