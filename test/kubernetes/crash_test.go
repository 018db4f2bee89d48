package kubernetes_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func (s *site) log() string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "launcher.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// soon waits without a pause: what it waits for lasts milliseconds.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// A launcher is killed as soon as the cluster has each thing that it makes for a node, and while
// the node goes: the next one goes on with what there is, makes no second one and leaves none.
func TestSiteKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t, replace(clusterSection, "POOL", "killed", "name: cluster", "name: killed"))
	namespace := func() string {
		if names := s.named("/api/v1/namespaces", "killed"); len(names) > 0 {
			return names[len(names)-1]
		}
		return ""
	}
	has := func(path string) func() bool {
		return func() bool {
			name := namespace()
			if name == "" {
				return false
			}
			status, _ := s.admin.ask("GET", strings.ReplaceAll(path, "NS", name), "")
			return status == http.StatusOK
		}
	}
	for _, step := range []struct {
		name string
		seen func() bool
	}{
		{"namespace", func() bool { return namespace() != "" }},
		{"service account", has("/api/v1/namespaces/NS/serviceaccounts/zuul-worker")},
		{"role", has("/apis/rbac.authorization.k8s.io/v1/namespaces/NS/roles/zuul-restricted")},
		{"role binding", has("/apis/rbac.authorization.k8s.io/v1/namespaces/NS/rolebindings/zuul-role")},
		{"secret", has("/api/v1/namespaces/NS/secrets/zuul-worker")},
		{"pod", has("/api/v1/namespaces/NS/pods/work")},
	} {
		t.Run(step.name, func(t *testing.T) {
			victim := s.launcher()
			request := s.submit("work")
			soon(t, step.name, step.seen)
			s.kill(victim)
			next := s.launcher()
			n := s.take(request)
			if names := s.named("/api/v1/namespaces", "killed"); len(names) != 1 || names[0] != text(n, "namespace") {
				t.Errorf("namespaces %v, the node is in %s", names, text(n, "namespace"))
			}
			if strings.Contains(s.log(), "Launch failed") {
				t.Error("the launch did not go on, but began anew")
			}
			worker := s.admin.as(text(n, "token"))
			if status, _ := worker.ask("GET", "/api/v1/namespaces/"+text(n, "namespace")+"/pods/work", ""); status != http.StatusOK {
				t.Errorf("the job reads its pod: %d", status)
			}
			// And while it goes.
			if err := s.zuul.Return(n); err != nil {
				t.Fatal(err)
			}
			soon(t, "the namespace goes", func() bool {
				_, answer := s.admin.ask("GET", "/api/v1/namespaces/"+text(n, "namespace"), "")
				return at(answer, "status", "phase") != "Active"
			})
			s.kill(next)
			last := s.launcher()
			await(t, "nothing is left", func() bool { return namespace() == "" })
			if err := s.zuul.WaitGone(t.Context(), n.ID); err != nil {
				t.Error(err)
			}
			s.kill(last)
		})
	}
}

// The same of a pod in a namespace that is shared: killed when it is asked for, and while it goes.
func TestSiteOfSharedNamespaceKilled(t *testing.T) {
	a := limited(t, "killed-shared")
	s := newSite(t, replace(podsSection, "POOL", "killed-shared", "name: shared", "name: killed-pods"))
	s.admin = a
	pods := "/api/v1/namespaces/killed-shared/pods"
	for _, step := range []string{"asked for", "runs"} {
		t.Run(step, func(t *testing.T) {
			victim := s.launcher()
			request := s.submit("work")
			soon(t, step, func() bool {
				names := s.named(pods, "killed-pods")
				if len(names) == 0 || step == "asked for" {
					return len(names) > 0
				}
				_, answer := a.ask("GET", pods+"/"+names[0], "")
				return at(answer, "status", "phase") == "Running"
			})
			s.kill(victim)
			next := s.launcher()
			n := s.take(request)
			if names := s.named(pods, "killed-pods"); len(names) != 1 || names[0] != text(n, "pod") {
				t.Errorf("pods %v, the node is %s", names, text(n, "pod"))
			}
			if err := s.zuul.Return(n); err != nil {
				t.Fatal(err)
			}
			soon(t, "the pod goes", func() bool {
				_, answer := a.ask("GET", pods+"/"+text(n, "pod"), "")
				return at(answer, "metadata", "deletionTimestamp") != nil || at(answer, "code") != nil
			})
			s.kill(next)
			last := s.launcher()
			await(t, "nothing is left", func() bool { return len(s.named(pods, "killed-pods")) == 0 })
			if err := s.zuul.WaitGone(t.Context(), n.ID); err != nil {
				t.Error(err)
			}
			s.kill(last)
		})
	}
}
