package web

import (
	"context"
	"errors"
	"net/http"
)

// Actions is the room for what people do from the page. Its methods will be those of
// zkmodel/operate that have a button, such as holding a node. It is empty: the page
// changes nothing, and no path leads here.
type Actions any

// errNoToken says that who asks for an action has not shown the token.
var errNoToken = errors.New("an action wants the token of webapp.token")

// act does an action for a request that carries the token, and writes down who did what
// to what, and what came of it. Neither this host nor an open page is enough: a browser
// asks from there for whoever wrote the page that it shows.
func (h *handler) act(r *http.Request, action, target string, do func(context.Context) error) error {
	log := h.Logger.Named("audit").With("action", action, "target", target, "client", r.RemoteAddr)
	if !h.hasToken(r) {
		log.Info("Action refused, nothing was changed", "reason", errNoToken)
		return errNoToken
	}
	if err := do(r.Context()); err != nil {
		log.Info("Action failed", "error", err)
		return err
	}
	log.Info("Action done")
	return nil
}
