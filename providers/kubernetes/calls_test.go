package kubernetes

import (
	"net/http/httptest"
	"testing"
)

// A kind of call for each node would grow a daemon's figures for ever.
func TestCallsAreOfFewKinds(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/namespaces":                                           "GET namespaces",
		"/api/v1/namespaces/pods-0000000001":                           "GET namespaces",
		"/api/v1/namespaces/main-0000000001/pods/work":                 "GET pods",
		"/api/v1/namespaces/main-0000000001/secrets/zuul-worker":       "GET secrets",
		"/api/v1/namespaces/n/serviceaccounts/zuul-worker/token":       "GET serviceaccounts",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/n/rolebindings": "GET rolebindings",
		"/version": "GET other",
	} {
		if got := operation(httptest.NewRequestWithContext(t.Context(), "GET", path, nil)); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}
