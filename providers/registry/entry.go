package registry

import (
	"sync"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// entry is one provider: being opened, open or failed.
type entry struct {
	section  configs.Provider
	once     sync.Once // opens it; provider and err are of that
	provider providers.Provider
	err      error

	users   int                // under the registry's mutex
	known   providers.Provider // likewise; nil until it is open
	retired bool               // likewise: it is closed when the last user is done
}

// enter finds or makes the entry of a section, and counts a user. An entry that it
// replaces and nobody uses is for the caller to close.
func (r *Registry) enter(section configs.Provider) (e, unused *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e = r.current[section.Name]
	if e == nil || !e.section.Equal(&section) {
		if e != nil {
			unused = e.retire()
		}
		e = &entry{section: section}
		r.current[section.Name] = e
	}
	e.users++
	return e, unused
}

// start opens an entry and says how that ended.
func (r *Registry) start(e *entry) {
	if e.provider, e.err = r.open(e.section); e.err != nil {
		r.tell(e, r.events.Opened, e.err)
		return
	}
	r.tell(e, r.events.Opened, nil)
	r.mu.Lock()
	e.known = e.provider
	r.mu.Unlock()
	if teller, ok := e.provider.(providers.Teller); ok {
		teller.Tell(func(trouble error) { r.tell(e, r.events.Told, trouble) })
	}
}

// tell calls an event, unless another entry has the name by now.
func (r *Registry) tell(e *entry, event func(string, error), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if event != nil && r.current[e.section.Name] == e {
		event(e.section.Name, err)
	}
}

// leave counts a user out. An entry that is retired has its name no more.
func (r *Registry) leave(e *entry, retire bool) error {
	r.mu.Lock()
	e.users--
	if retire && r.current[e.section.Name] == e {
		delete(r.current, e.section.Name)
	}
	var unused *entry
	if retire || e.retired {
		unused = e.retire()
	}
	r.mu.Unlock()
	return unused.close()
}

// retire has the entry closed when its last user is done: it returns the entry if that is
// now, else nil. It is called under the registry's mutex.
func (e *entry) retire() *entry {
	e.retired = true
	if e.users > 0 {
		return nil
	}
	return e
}

// close closes the provider of an entry that nobody uses; nil has none.
func (e *entry) close() error {
	if e == nil || e.provider == nil {
		return nil
	}
	return e.provider.Close()
}
