package layout

import (
	"errors"
	"net/http"
)

// Maker makes a page of this moment. What it returns is nobody else's.
//
// Errors: ErrNotFound; a RedirectError.
type Maker func(r *http.Request) (*Page, error)

// ErrNotFound says that what a page is about is not there. It is wrapped by what is missing.
var ErrNotFound = errors.New("there is no such thing")

// RedirectError says that a page is elsewhere on this server.
type RedirectError struct{ To string }

// Error implements error.
func (e *RedirectError) Error() string { return "see " + e.To }

// missing is the page of what is not there.
var missing = Parse(`{{define "body"}}<h1>Not found</h1><p>{{.Why}}</p><p>It may be gone since: records of builds, uploads, nodes and requests go when they are over.</p>{{end}}`)

// Missing says what is not there.
func Missing(why error) *Page {
	return &Page{Template: missing, Title: "Not found", Body: &struct{ Why string }{why.Error()}}
}
