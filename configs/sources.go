package configs

import "time"

// Source is what this site looks at by itself, and the wave that is made when it has changed.
type Source struct {
	Wave             // Schedule is ""
	Command []string // a program and its arguments; what it prints is the state
	Every   time.Duration
	Timeout time.Duration // of one look
}

// String shows no command, which may hold a token.
func (s Source) String() string { return "{" + s.Name + "}" }

// GoString is String, so that %#v shows no command either.
func (s Source) GoString() string { return s.String() }

// source decodes one source.
func (l *loader) source(v value) Source {
	s := Source{Wave: defaultWave(), Every: 5 * time.Minute, Timeout: time.Minute}
	keys := s.keys("source")
	keys["command"], keys["every"], keys["timeout"] = texts(&s.Command), wholeSeconds(&s.Every, 1), patience(&s.Timeout, time.Hour)
	have := v.decode("source", keys)
	v.require(have, "name", "command")
	if have["command"] && (len(s.Command) == 0 || s.Command[0] == "") {
		v.fail("expected command as a list: a program and its arguments")
	}
	l.checkWave(v, have, s.Wave)
	return s
}
