// Package redact keeps secrets out of text for people: logs, reasons in records,
// answers of commands. A process has one Secrets; who reads a secret adds it, and
// where text from outside enters, clouds and hooks above all, it goes through it.
package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Mask is what stands in for a secret.
const Mask = "********"

// shortest is the length from which a value is masked: a shorter one would hide
// half of the text and is no secret.
const shortest = 6

// Secrets are values that no text for people may have. The zero value and nil
// know none. It may be used by any number of goroutines.
type Secrets struct {
	mu       sync.RWMutex
	of       map[string][]string // values by who keeps them
	replacer *strings.Replacer
}

// Add adds values for good.
func (s *Secrets) Add(values ...string) {
	if s != nil {
		s.change("", func(old []string) []string { return append(old, values...) })
	}
}

// Set replaces the values of an owner, such as a cloud whose tokens change.
func (s *Secrets) Set(owner string, values ...string) {
	if s != nil {
		s.change(owner, func([]string) []string { return values })
	}
}

// change replaces the values of an owner by what they become.
func (s *Secrets) change(owner string, become func(old []string) []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string][]string{}
	}
	now := slices.Sorted(slices.Values(become(slices.Clone(s.of[owner]))))
	if now = slices.Compact(now); slices.Equal(now, s.of[owner]) {
		return
	}
	s.of[owner] = now
	s.replacer = replacer(slices.Concat(slices.Collect(maps.Values(s.of))...))
}

// replacer masks values in every spelling, line by line; nil when there are none.
func replacer(values []string) *strings.Replacer {
	spelt := map[string]bool{}
	for _, value := range values {
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= shortest {
				spell(line, spelt)
			}
		}
	}
	if len(spelt) == 0 {
		return nil
	}
	all := slices.Collect(maps.Keys(spelt))
	// The longest first: one may contain another.
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	pairs := make([]string, 0, 2*len(all))
	for _, text := range all {
		pairs = append(pairs, text, Mask)
	}
	return strings.NewReplacer(pairs...)
}

// spell adds a line as it is, and as JSON, Go and addresses spell it; and each of
// these as an answer that is quoted in an error, or in a line of the log, does.
func spell(line string, spelt map[string]bool) {
	spellings := []string{line, url.QueryEscape(line), url.PathEscape(line), inGo(line)}
	if text, err := json.Marshal(line); err == nil {
		spellings = append(spellings, string(text[1:len(text)-1]))
	}
	for _, text := range inBase64(line) {
		spelt[text] = true
	}
	for _, text := range spellings {
		spelt[text], spelt[inGo(text)], spelt[strings.ReplaceAll(text, `"`, `\"`)] = true, true, true // hclog leaves backslashes
	}
}

// inBase64 returns what a text looks like within base64, where up to two other bytes may precede it in its group of three: a
// header such as "Basic BASE64(user:password)". Characters that also hold bits of other bytes are left out.
func inBase64(text string) (list []string) {
	for before, shared := range []int{0, 2, 3} {
		bytes := append(make([]byte, before), text...)
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			encoded := encoding.EncodeToString(bytes)[shared:]
			if len(bytes)%3 != 0 {
				encoded = encoded[:len(encoded)-1]
			}
			if len(encoded) >= shortest {
				list = append(list, encoded)
			}
		}
	}
	return list
}

// inGo is a text as a string of Go has it.
func inGo(text string) string {
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// Text is text without the secrets.
func (s *Secrets) Text(text string) string {
	if s == nil {
		return text
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.replacer == nil {
		return text
	}
	return s.replacer.Replace(text)
}

// Has reports whether a text contains a secret.
func (s *Secrets) Has(text string) bool { return s.Text(text) != text }

// Error is err with a text without the secrets; errors.Is and As see what they
// saw before. nil stays nil.
func (s *Secrets) Error(err error) error {
	if err == nil || !s.Has(err.Error()) {
		return err
	}
	return &redacted{err, s.Text(err.Error())}
}

// redacted is an error whose text had a secret.
type redacted struct {
	err  error
	text string
}

// Error implements error.
func (r *redacted) Error() string { return r.text }

// Unwrap is for errors.Is and errors.As.
func (r *redacted) Unwrap() error { return r.err }

// Writer is w for text without the secrets, which every Write has whole: a
// logger's line.
func (s *Secrets) Writer(w io.Writer) io.Writer { return &writer{s, w} }

type writer struct {
	secrets *Secrets
	to      io.Writer
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.to, w.secrets.Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
