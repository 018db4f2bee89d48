package actions

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"sync"
	"time"

	"poolkeeper/web/layout"
)

// How long is remembered who has logged in, and what was told; and how many.
const (
	sessionTime  = 8 * time.Hour
	mostSessions = 1000
	toldTime     = 5 * time.Minute
	mostTold     = 1000
)

// session is of who has logged in.
type session struct {
	name, hash string // of the token
	ends       time.Time
}

// sessions are kept in memory alone, by the hash of what the cookie holds: they end with the daemon.
type sessions struct {
	now func() time.Time
	mu  sync.Mutex
	all map[[sha256.Size]byte]session
}

// random is a text that nobody guesses.
func random() string {
	data := make([]byte, 32)
	_, _ = rand.Read(data) // it never fails
	return base64.RawURLEncoding.EncodeToString(data)
}

// begin makes a session, and returns what its cookie holds. Where there are too many, the one that ends
// first does so now.
func (s *sessions) begin(name, hash string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[[sha256.Size]byte]session{}
	}
	for len(s.all) >= mostSessions {
		var first [sha256.Size]byte
		end := time.Time{}
		for key, one := range s.all {
			if end.IsZero() || one.ends.Before(end) {
				first, end = key, one.ends
			}
		}
		delete(s.all, first)
	}
	value := random()
	s.all[sha256.Sum256([]byte(value))] = session{name, hash, s.now().Add(sessionTime)}
	return value
}

func (s *sessions) find(value string) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sha256.Sum256([]byte(value))
	one, ok := s.all[key]
	if ok && s.now().After(one.ends) {
		delete(s.all, key)
		ok = false
	}
	return one, ok
}

func (s *sessions) end(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sha256.Sum256([]byte(value)))
}

// cookie is the name of the cookie: browsers do not tell ports apart, so that two daemons of a host
// would take each other's.
func (d *Desk) cookie() string { return "poolkeeper-" + d.Daemon }

// setCookie has the browser keep a session, or forget it for "".
func (d *Desk) setCookie(w http.ResponseWriter, r *http.Request, value string) {
	age := int(sessionTime.Seconds())
	if value == "" {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: d.cookie(), Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https", // a proxy's word is enough to ask for more
	})
}

// told keeps what came of actions until the page that follows shows it, for who did them.
type told struct {
	now func() time.Time
	mu  sync.Mutex
	all []toldOne
}

type toldOne struct {
	id, who string
	until   time.Time
	text    layout.Told
}

// keep returns the id of what it keeps.
func (t *told) keep(who Who, text layout.Told) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.all = slices.DeleteFunc(t.all, func(one toldOne) bool { return now.After(one.until) })
	if len(t.all) >= mostTold {
		t.all = slices.Delete(t.all, 0, len(t.all)-mostTold+1)
	}
	one := toldOne{random(), who.Via + "|" + who.Name, now.Add(toldTime), text}
	t.all = append(t.all, one)
	return one.id
}

func (t *told) of(who Who, id string) *layout.Told {
	if id == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.all {
		if one.id == id && one.who == who.Via+"|"+who.Name && !t.now().After(one.until) {
			text := one.text
			text.Lines = slices.Clone(text.Lines)
			return &text
		}
	}
	return nil
}
