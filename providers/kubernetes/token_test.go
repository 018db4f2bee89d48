package kubernetes

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// An answer without a token, or without its end, is not the API server's: it says nothing of how long tokens are good.
func TestTokensThatAreAskedFor(t *testing.T) {
	body := ""
	serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	cfg := section("main")
	cfg.Settings = &configs.KubernetesDriver{Token: configs.TokenRequest, TokenLifetime: time.Hour}
	n, ok := opened(t, New, cfg).kind.(*namespaces)
	if !ok {
		t.Fatal("the nodes are no namespaces")
	}
	for answer, want := range map[string]error{
		"{}":                           providers.ErrTransient,
		`{"status": {}}`:               providers.ErrTransient,
		`{"status": {"token": "abc"}}`: providers.ErrTransient,
		`{"status": {"expirationTimestamp": "2100-01-01T00:00:00Z"}}`:                 providers.ErrTransient,
		`{"status": {"token": "abc", "expirationTimestamp": "2000-01-01T00:00:00Z"}}`: errShortToken,
		`{"status": {"token": "abc", "expirationTimestamp": "2100-01-01T00:00:00Z"}}`: nil,
	} {
		body = answer
		c := providers.Connection{}
		if err := n.requestToken(t.Context(), "main-1", &c); !errors.Is(err, want) || (c.Token == "abc") != (err == nil) {
			t.Errorf("%s is %v, want %v", answer, err, want)
		}
	}
}
