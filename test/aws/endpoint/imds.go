package endpoint

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Metadata starts the metadata service of a machine that has a role, in its second version only, and returns its URL.
func (e *Endpoint) Metadata(tb testing.TB) string {
	tb.Helper()
	const token, header = "a-token-of-imds", "X-Aws-Ec2-Metadata-Token"
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /latest/api/token", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(header+"-Ttl-Seconds", r.Header.Get(header+"-Ttl-Seconds"))
		_, _ = io.WriteString(w, token) // the client may be gone
	})
	mux.HandleFunc("GET /latest/meta-data/iam/security-credentials/{role...}", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get(header) != token:
			http.Error(w, "no token", http.StatusUnauthorized)
		case r.PathValue("role") == "":
			_, _ = io.WriteString(w, e.Profile)
		default:
			var id string
			var k key
			e.locked(func() {
				id, k = e.world.session(time.Now().UTC(), strings.Trim(r.PathValue("role"), "/")+"/i-0", 6*time.Hour)
			})
			_ = json.NewEncoder(w).Encode(map[string]any{
				"Code": "Success", "Type": "AWS-HMAC", "LastUpdated": time.Now().UTC(), "AccessKeyId": id, "SecretAccessKey": k.secret, "Token": k.token, "Expiration": k.until,
			})
		}
	})
	server := httptest.NewServer(mux)
	tb.Cleanup(server.Close)
	return server.URL
}

// Sessions are the keys that were given for a while, with all that is secret of them.
func (e *Endpoint) Sessions() (secrets []string) {
	e.locked(func() {
		for _, k := range e.world.keys {
			if k.token != "" {
				secrets = append(secrets, k.secret, k.token)
			}
		}
	})
	return secrets
}
