package openstack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"poolkeeper/providers/openstack/clouds"
)

// How long a cloud that refused credentials is not asked with the same again:
// clouds lock accounts that fail too often.
const (
	refusedFirst = 15 * time.Second
	refusedMost  = 5 * time.Minute
)

// Logins are the log-ins of a process, which all of its providers share: one at
// a time for each account, and growing pauses after the cloud has refused one.
// Credentials that change are another account. The zero value is ready.
type Logins struct {
	lock keyed

	mu      sync.Mutex
	refused map[string]refusal // by account
	ends    map[string]asked   // by account
}

// refusal is what the last log-ins of an account came to.
type refusal struct {
	times int
	until time.Time // when the next may be tried
	err   error     // of the last
}

// asked is what the last question came to when an account's credential ends.
type asked struct {
	at    time.Time
	known bool
	end   time.Time // zero is never
}

// accountOf identifies credentials without holding them.
func accountOf(c clouds.Cloud) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%+q", c.Auth))
	return hex.EncodeToString(sum[:])
}

// do logs in, unless the cloud has just refused the account.
//
// Errors: those of login; the last, while the cloud is not asked.
func (l *Logins) do(ctx context.Context, account string, now func() time.Time, login func() error) error {
	unlock, err := l.lock.lock(ctx, account)
	if err != nil {
		return err
	}
	defer unlock()
	last := l.last(account)
	if wait := last.until.Sub(now()); wait > 0 {
		return fmt.Errorf("%w; the cloud is asked again in %s, or when the credentials change",
			failure(ctx, "get a token", last.err), wait.Round(time.Second))
	}
	err = login()
	switch {
	case err == nil:
		l.forget(account)
	case isRefused(err) && ctx.Err() == nil:
		last.times++
		pause := min(refusedFirst<<min(last.times-1, 20), refusedMost)
		l.note(account, refusal{times: last.times, until: now().Add(pause), err: err})
	}
	return err
}

// isRefused reports whether a cloud knows the account no more, or its password.
func isRefused(err error) bool {
	return is(err, http.StatusUnauthorized) || is(err, http.StatusForbidden) || unknownCredential(err)
}

// unknownCredential reports whether Keystone lacks the application credential, for which it answers 404.
func unknownCredential(err error) bool {
	text := ""
	if e := (*cloudError)(nil); errors.As(err, &e) {
		text = e.message
	} else if answer := (gophercloud.ErrUnexpectedResponseCode{}); errors.As(err, &answer) {
		text = messageOf(answer.Body)
	}
	return is(err, http.StatusNotFound) && strings.Contains(strings.ToLower(text), "application credential")
}

func (l *Logins) last(account string) refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused[account]
}

func (l *Logins) note(account string, r refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused == nil {
		l.refused = map[string]refusal{}
	}
	l.refused[account] = r
}

func (l *Logins) forget(account string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.refused, account)
}

// end is when the credential of an account ends, asked for once: that never changes. After
// an error it is unknown for a day. Zero is never, or unknown.
func (l *Logins) end(ctx context.Context, account string, now func() time.Time, ask func() (time.Time, error)) time.Time {
	unlock, err := l.lock.lock(ctx, "end of "+account)
	if err != nil {
		return time.Time{}
	}
	defer unlock()
	l.mu.Lock()
	last, before := l.ends[account]
	l.mu.Unlock()
	if before && (last.known || now().Sub(last.at) < endsEvery) {
		return last.end
	}
	end, err := ask()
	if ctx.Err() != nil {
		return time.Time{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends == nil {
		l.ends = map[string]asked{}
	}
	l.ends[account] = asked{now(), err == nil, end}
	return end
}
