package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"poolkeeper/providers"
)

// A pod that will never run and is waited for costs the time of a launch; one that is given up
// too soon, a launch. The reasons are what an operator has to go by.
func TestWhatBecomesOfAPod(t *testing.T) {
	for name, c := range map[string]struct {
		status        string
		running, full bool
		failed        bool
		words         string
	}{
		"runs":    {`{"phase": "Running"}`, true, false, false, ""},
		"waits":   {`{"phase": "Pending"}`, false, false, false, "its phase is Pending"},
		"evicted": {`{"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}`, false, false, true, "Failed: Evicted: The node was low"},
		"memory": {
			`{"phase": "Failed", "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}`,
			false, false, true, "container c ended with exit code 137: OOMKilled",
		},
		"ended": {`{"phase": "Succeeded"}`, false, false, true, "Succeeded"},
		"full": {
			`{"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available: 1 Insufficient cpu."}]}`,
			false, true, false, "Unschedulable: 0/1 nodes",
		},
		"nowhere": {
			`{"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "node(s) didn't match Pod's node affinity/selector"}]}`,
			false, false, false, "didn't match",
		},
		"no image": {
			`{"phase": "Pending", "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling"}}}]}`,
			false, false, false, "container c waits: ImagePullBackOff: Back-off pulling",
		},
		"bad image": {
			`{"phase": "Pending", "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "InvalidImageName"}}}]}`,
			false, false, true, "InvalidImageName",
		},
		"crashes": {
			`{"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}]}`,
			false, false, false, "CrashLoopBackOff; container i ended with exit code 1: Error",
		},
	} {
		var status podStatus
		if err := json.Unmarshal([]byte(c.status), &status); err != nil {
			t.Fatal(err)
		}
		s := stateOf(&status)
		if s.running != c.running || s.full != c.full || errors.Is(s.failed, providers.ErrNodeFailed) != c.failed || !strings.Contains(s.text, c.words) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// The server has one code for four things: taken for a missing right, a quota would stop the
// whole provider; taken for a quota, a missing right would wait for ever without a word.
func TestWhatErrorsMean(t *testing.T) {
	answer := func(code int, reason, text string) error {
		return failed(code, fmt.Appendf(nil, `{"kind": "Status", "status": "Failure", "code": %d, "reason": %q, "message": %q}`, code, reason, text))
	}
	forbidden := func(text string) error { return answer(403, "Forbidden", `pods "p" is forbidden: `+text) }
	for _, c := range []struct {
		err  error
		want error
	}{
		{forbidden("exceeded quota: room, requested: pods=1, used: pods=3, limited: pods=3"), providers.ErrQuota},
		// More than there is at all: a request would wait for ever.
		{forbidden("exceeded quota: room, requested: limits.cpu=500m,limits.memory=4Gi, used: limits.cpu=0,limits.memory=0, limited: limits.cpu=1,limits.memory=2048Mi"), providers.ErrInvalid},
		{forbidden("exceeded quota: room, requested: pods=1, used: pods=0, limited: pods=0"), providers.ErrInvalid},
		{forbidden("exceeded quota: room, requested: limits.cpu=1500m, used: limits.cpu=1, limited: limits.cpu=2"), providers.ErrQuota},
		{forbidden("exceeded quota: room"), providers.ErrQuota},
		{forbidden("unable to create new content in namespace x because it is being terminated"), providers.ErrNotFound},
		{forbidden(`error looking up service account x/default: serviceaccount "default" not found`), providers.ErrTransient},
		{forbidden("status unknown for quota: room, resources: pods"), providers.ErrTransient},
		{forbidden(`User "u" cannot create resource "pods"`), providers.ErrUnusable},
		{forbidden(`user "u" (groups=[]) is attempting to grant RBAC permissions not currently held`), providers.ErrUnusable},
		{forbidden("failed quota: room: must specify limits.cpu for: c"), providers.ErrInvalid},
		{forbidden("maximum cpu usage per Container is 1, but limit is 2"), providers.ErrInvalid},
		{forbidden(`violates PodSecurity "restricted:latest": privileged`), providers.ErrInvalid},
		{forbidden("unable to validate against any security context constraint"), providers.ErrInvalid},
		{answer(403, "", `admission webhook "w" denied the request: no`), providers.ErrInvalid},
		{answer(403, "Forbidden", "unknown"), providers.ErrUnusable},
		{answer(401, "Unauthorized", "token is over"), providers.ErrUnusable},
		{answer(404, "NotFound", `pods "p" not found`), providers.ErrNotFound},
		{answer(400, "BadRequest", "no such field"), providers.ErrInvalid},
		{answer(422, "Invalid", `Pod "p" is invalid`), providers.ErrInvalid},
		{answer(409, "Conflict", "changed"), providers.ErrTransient},
		{answer(429, "TooManyRequests", "wait"), providers.ErrTransient},
		{answer(500, "InternalError", "etcd"), providers.ErrTransient},
		{answer(503, "", ""), providers.ErrTransient},
		// What is before the API server knows nothing of objects, and its pages are no reasons.
		{failed(404, []byte("<html>no such page</html>")), providers.ErrTransient},
		{failed(403, []byte("forbidden: by the proxy")), providers.ErrUnusable},
		{failed(400, nil), providers.ErrInvalid},
		{errors.New("connection refused"), providers.ErrTransient},
	} {
		if err := failure(c.err); !errors.Is(err, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%v means %v", c.err, err)
		}
	}
	if failure(nil) != nil {
		t.Error("no error is a failure")
	}
}
