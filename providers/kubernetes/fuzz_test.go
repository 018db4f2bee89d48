package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"poolkeeper/providers"
)

// The calls whose answers are replaced.
const (
	listSpaces  = "GET /api/v1/namespaces"
	getSpace    = "GET /api/v1/namespaces/" + ourSpace
	deleteSpace = "DELETE /api/v1/namespaces/" + ourSpace
	makeSpace   = "POST /api/v1/namespaces"
	getSecret   = getSpace + "/secrets/zuul-worker"
	getInSpace  = "GET " + podInSpace
	listPods    = "GET /api/v1/namespaces/main/pods"
	getPod      = listPods + "/" + ourPod
	deletePod   = "DELETE /api/v1/namespaces/main/pods/" + ourPod
	makePod     = "POST /api/v1/namespaces/main/pods"
	review      = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
)

var calls = []string{listSpaces, getSpace, deleteSpace, makeSpace, getSecret, getInSpace, listPods, getPod, deletePod, makePod, review}

// seeds are answers that lie, or are none.
func seeds(call string) []string {
	answer := usual[call]
	list := []string{
		answer, "", "null", "{}", "[]", "<html><h1>502</h1></html>", "\xff", answer[:len(answer)/2], `{"items": null}`, `{"items": [{}]}`, `{"items": {}}`, `{"items": []}`,
		`{"kind": "PodList", "items": null}`, `{"kind": "NamespaceList", "items": [], "metadata": {"continue": "x"}}`, `{"metadata": {"name": 5}}`, `{"status": {"allowed": "yes"}}`,
		`{"kind": "Status", "apiVersion": "v1", "status": "Success"}`,
	}
	for _, lie := range [][2]string{
		{`"a"`, `"b"`},
		{"cluster", "other"},
		{ourSpace, ""},
		{ourPod, ""},
		{ourSpace, "kube-system"},
		{ourPod, "work-0000000009"},
		{`"uid": "1"`, `"uid": ""`},
		{`"uid": "4"`, `"uid": ""`},
		{`"namespace": "main"`, `"namespace": "kube-system"`},
		{`"uid"`, `"namespace": "x", "uid"`},
		{`"uid"`, `"deletionTimestamp": "2026-01-01T00:00:00Z", "uid"`},
		{"Running", "Failed"},
		{"Running", "Pending"},
		{"Running", `a\nb`},
		{`"dG9rZW4="`, `""`},
		{ourSpace, "../../secrets"},
		{`"phase": "Running"`, `"phase": "Failed", "message": "a\nb\u001b", "containerStatuses": [{"name": "c\n", "state": {"terminated": {"exitCode": 1, "reason": "OOM\n"}}}]`},
		{`"phase": "Running"`, `"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "Insufficient cpu\n"}]`},
	} {
		if other := strings.ReplaceAll(answer, lie[0], lie[1]); other != answer {
			list = append(list, other)
		}
	}
	return list
}

// failures are answers that are errors.
var failures = map[int][]string{
	http.StatusForbidden: {
		"exceeded quota: room, requested: pods=1, used: pods=3, limited: pods=3", "error looking up service account x/default", "because it is being terminated",
		"forbidden: User \\\"u\\\" cannot", "forbidden: a\\nb", "secret-token", "exceeded quota: , requested: =, used: , limited: =",
	},
	http.StatusNotFound:            {"", "not found"},
	http.StatusConflict:            {"AlreadyExists"},
	http.StatusUnauthorized:        {"secret-token"},
	http.StatusInternalServerError: {"a\\nb", strings.Repeat("y", 5000)},
}

// FuzzAnswers: whatever an API server answers, a list is what it says or an error, never what it does not say: an empty list gives
// up all that is there. It ends, however often a page has a next one. What is deleted, or given to a job, is what was asked for, and
// ours; an error is of the contract, short, of one line, and without our token.
func FuzzAnswers(f *testing.F) {
	for which, call := range calls {
		for _, body := range seeds(call) {
			f.Add(uint8(which), 200, []byte(body))
		}
		for status, texts := range failures {
			for _, text := range texts {
				f.Add(uint8(which), status, []byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "`+strings.ReplaceAll(http.StatusText(status), " ", "")+`", "message": "`+text+`"}`))
			}
			f.Add(uint8(which), status, []byte("<html>\n<h1>secret-token</h1>\n</html>"))
		}
	}
	s := &apiServer{most: 200}
	spaces, inPools := openOn(f, s)
	f.Fuzz(func(t *testing.T, which uint8, status int, body []byte) {
		call := calls[int(which)%len(calls)]
		if status < 200 || status > 599 {
			status = 200 + int(uint(status)%400)
		}
		for _, read := range reads {
			if !slices.Contains(read.asks, call) {
				continue
			}
			for p, id := range map[providers.Provider]string{spaces: ourSpace, inPools: "main-" + ourPod} {
				one := &trial{T: t, s: s, p: p, id: id, pods: p == inPools}
				ctx, cancel := within(t.Context(), read.waits)
				s.set(call, status, body, cancel)
				err := read.read(ctx, one)
				cancel()
				judge(t, read.name, err)
				if _, n := s.made(""); n >= s.most && !read.waits {
					t.Errorf("%s: asked %d times", read.name, n)
				}
			}
		}
	})
}

// trial is one answer, with what a provider makes of it.
type trial struct {
	*testing.T
	s    *apiServer
	p    providers.Provider
	id   string
	pods bool
}

// of is one of two, by what the provider's nodes are.
func (t *trial) of(space, pod string) string {
	if t.pods {
		return pod
	}
	return space
}

// reads are what daemons ask a provider for, and what it asks the cluster for then.
var reads = []struct {
	name  string
	waits bool
	asks  []string
	read  func(context.Context, *trial) error
}{
	{"list", false, []string{listSpaces, listPods}, func(ctx context.Context, t *trial) error {
		list, err := t.p.ListNodes(ctx)
		for _, one := range list {
			if one.ExternalID == "" || one.Name == "" || !isName(one.ExternalID) || one.Metadata[providers.MetaProvider] != "cluster" || t.pods != strings.HasPrefix(one.ExternalID, "main-"+one.Name) {
				t.Errorf("listed is %+v", one)
			}
		}
		t.says(len(list), err)
		return err
	}},
	{"limits", false, []string{listSpaces, listPods}, func(ctx context.Context, t *trial) error {
		_, err := t.p.Limits(ctx, nil)
		t.says(0, err)
		return err
	}},
	{"wait", true, []string{getSpace, getSecret, getInSpace, getPod, makeSpace}, func(ctx context.Context, t *trial) error {
		instance, err := t.p.WaitNode(ctx, t.id)
		if err != nil {
			return err
		}
		if _, body := t.s.served(t.of(getSpace, getPod)); instance.ExternalID != t.id || instance.Connection == nil || instance.Connection.Token == "" || !isOurs(body, t.of(ourSpace, ourPod)) {
			t.Errorf("who waits for %s gets %+v", t.id, instance)
		}
		return nil
	}},
	{"delete", true, []string{getSpace, getPod, deleteSpace, deletePod}, func(ctx context.Context, t *trial) error {
		err := t.p.DeleteNode(ctx, t.id)
		deleted, _ := t.s.made(t.of(deleteSpace, deletePod))
		status, body := t.s.served(t.of(getSpace, getPod))
		if deleted && (status > 299 || !isOurs(body, t.of(ourSpace, ourPod))) {
			t.Errorf("deleted is what is told as %d %q", status, body)
		}
		if err == nil && !deleted && !isMissing(body) && !isNamed(body, t.of(ourSpace, ourPod)) {
			t.Errorf("gone is what is told as %d %q", status, body)
		}
		return err
	}},
	{"create", true, []string{getSpace, getPod, makeSpace, makePod}, func(ctx context.Context, t *trial) error {
		id, err := t.p.CreateNode(ctx, providers.NodeSpec{NodeID: node, Pool: "main", Label: "work", Metadata: madeBy("a")})
		if err != nil {
			return err
		}
		_, body := t.s.served(t.of(getSpace, getPod))
		if len(t.s.changes()) == 0 && !isOurs(body, t.of(ourSpace, ourPod)) || !strings.HasPrefix(id, "main-") {
			t.Errorf("%q is found in %q", id, body)
		}
		return nil
	}},
	{"check", false, []string{review, makePod}, func(ctx context.Context, t *trial) error {
		checker, _ := t.p.(providers.Checker)
		missing, err := checker.CheckCloud(ctx)
		for _, one := range missing {
			if strings.ContainsAny(one.Message, "\n\x00\x1b") || len(one.Message) > 2000 || strings.Contains(one.Message, "secret-token") {
				t.Errorf("missing is %q", one.Message)
			}
			if _, body := t.s.served(makePod); strings.Contains(one.Message, "is not in the cluster") && !isMissing(body) {
				t.Errorf("missing is %q, of %q", one.Message, body)
			}
		}
		return err
	}},
}

// says fails for a list that was taken from an answer that has none, or fewer.
func (t *trial) says(entries int, err error) {
	t.Helper()
	if err != nil {
		return
	}
	if _, body := t.s.served(t.of(listSpaces, listPods)); listed(body) < entries {
		t.Errorf("%d entries, and no error, of %q", entries, body)
	}
}

// judge fails for an error that an operator cannot use, or should not see.
func judge(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	known := false
	for _, one := range []error{
		providers.ErrInvalid, providers.ErrNotFound, providers.ErrQuota, providers.ErrTransient, providers.ErrUnusable, providers.ErrNodeFailed, context.DeadlineExceeded,
	} {
		known = known || errors.Is(err, one)
	}
	if text := err.Error(); !known || len(text) > 2000 || strings.ContainsAny(text, "\n\x00\x1b") || strings.Contains(text, "secret-token") {
		t.Errorf("%s: the error %q", name, text)
	}
}
