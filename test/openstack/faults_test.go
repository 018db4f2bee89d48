package openstack_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"poolkeeper/providers"
	"poolkeeper/providers/openstack"
)

// trouble is what happens to every so manieth call.
type trouble struct {
	every int
	data  bool // image data meets it, too: nothing of it has been taken yet
	fault func(*proxy, call) mishap
}

// troubles are those that an upload, a launch and both deletions survive. A
// renewed token and a time-out are dear, so they come more rarely.
func troubles() map[string]trouble {
	always := func(m mishap) func(*proxy, call) mishap { return func(*proxy, call) mishap { return m } }
	return map[string]trouble{
		"401":             {every: 6, data: true, fault: always(answer(401))},
		"429 Retry-After": {every: 3, data: true, fault: always(answer(429, "Retry-After", "1"))},
		"500":             {every: 3, fault: always(answer(500))},
		"503":             {every: 3, data: true, fault: always(answer(503))},
		"time-out":        {every: 7, fault: always(mute)},
		"reset":           {every: 3, fault: always(cut)},
		"lost answer":     {every: 3, fault: func(p *proxy, c call) mishap { return deaf(p.targets[c.Service]) }},
		"slow":            {every: 3, data: true, fault: always(slow(time.Second))},
		"409 of a deletion": {every: 1, fault: func(_ *proxy, c call) mishap {
			if c.Method == http.MethodDelete && c.Service == "compute" && c.Try == 1 {
				return answer(409)
			}
			return nil
		}},
	}
}

// Whatever happens to every third call or so, an image is uploaded, a node
// launched, and both are deleted; the record of calls shows that the faults were
// met.
func TestFaults(t *testing.T) {
	empty(t, smallCloud)
	image := bootable(t)
	for name, bad := range troubles() {
		t.Run(name, func(t *testing.T) {
			gate, file := interpose(t, smallCloud)
			p := openWith(t, section(smallCloud), openstack.Options{Env: environment(file), CallTime: callTime(name)})
			met := 0
			gate.inject(func(c call) mishap {
				switch {
				case c.N%bad.every != 0, strings.HasSuffix(c.Path, "/file") && !bad.data:
					return nil
				case strings.HasSuffix(c.Path, "/tokens") && name == "401":
					return nil // that would be a wrong password
				}
				fault := bad.fault(gate, c)
				if fault != nil {
					met++
				}
				return fault
			})
			begin := time.Now()
			life(t, p, image)
			if met == 0 {
				t.Error("no fault was met")
			}
			t.Logf("%d faults in %s", met, time.Since(begin).Round(time.Millisecond))
			if t.Failed() {
				t.Log(gate.log())
			}
		})
	}
	wantNothingLeft(t, smallCloud)
}

// callTime is how long a call may take; 0 is the provider's own minute.
func callTime(trouble string) time.Duration {
	if trouble == "time-out" {
		return 5 * time.Second
	}
	return 0
}

// create asks for a node as a launcher does: again when there was no answer, and the
// server cannot come any more. Here it cannot at once, as what the proxy swallows is
// never sent.
func create(t *testing.T, p providers.Provider, node providers.NodeSpec) (id string, err error) {
	t.Helper()
	for range 5 {
		if id, err = p.CreateNode(t.Context(), node); !errors.Is(err, providers.ErrUnanswered) {
			break
		}
		t.Log(err)
	}
	return id, err
}

// life is that of an image and a node.
func life(t *testing.T, p providers.Provider, file string) {
	t.Helper()
	image, err := p.UploadImage(t.Context(), describe(t, p.Name(), file))
	if err != nil {
		t.Fatal(err)
	}
	id, err := create(t, p, spec(p.Name(), image))
	if err == nil {
		_, err = p.WaitNode(t.Context(), id)
	}
	if err != nil {
		t.Error(err)
	}
	if nodes, err := p.ListNodes(t.Context()); err != nil || len(nodes) != 1 {
		t.Errorf("the cloud has %+v, %v, want one node", nodes, err)
	}
	if err := errors.Join(p.DeleteNode(t.Context(), id), p.DeleteImage(t.Context(), image)); err != nil {
		t.Error(err)
	}
	nodes, nodeErr := p.ListNodes(t.Context())
	images, imageErr := p.ListImages(t.Context())
	if len(nodes)+len(images) > 0 || nodeErr != nil || imageErr != nil {
		t.Errorf("left behind: %+v, %v, %+v, %v", nodes, nodeErr, images, imageErr)
	}
}

// An upload that breaks, in the middle or at its end, leaves nothing in Glance.
func TestBrokenUpload(t *testing.T) {
	empty(t, smallCloud)
	image := bootable(t)
	gate, file := interpose(t, smallCloud)
	cfg := section(smallCloud)
	cfg.ImageUploadTimeout = 10 * time.Second
	p := open(t, cfg, file)
	for name, bad := range map[string]mishap{
		"reset":       middle(500_000),
		"refused":     answer(401),
		"conflict":    answer(409),
		"failure":     answer(500),
		"lost answer": deaf(gate.targets["image"]),
		"silence":     mute,
	} {
		gate.inject(func(c call) mishap {
			if strings.HasSuffix(c.Path, "/file") {
				return bad
			}
			return nil
		})
		id, err := p.UploadImage(t.Context(), describe(t, p.Name(), image))
		if !errors.Is(err, providers.ErrTransient) {
			t.Errorf("%s: UploadImage gave %q, %v", name, id, err)
		}
		if left, err := p.ListImages(t.Context()); len(left) > 0 || err != nil {
			t.Errorf("%s: left behind: %+v, %v", name, left, err)
		}
	}
	wantNothingLeft(t, smallCloud)
}

// A token that keystone has revoked is replaced, with the credentials that
// clouds.yaml holds by then: here another kind of them.
func TestRotation(t *testing.T) {
	empty(t, smallCloud)
	gate, file := interpose(t, smallCloud)
	p := open(t, section(smallCloud), file)
	if _, err := p.ListNodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	revoke(t, gate)
	if _, err := p.ListNodes(t.Context()); err != nil {
		t.Errorf("after the revocation: %v", err)
	}
	gate.writeClouds(t, file, smallCloud, true)
	revoke(t, gate)
	if _, err := p.ListNodes(t.Context()); !errors.Is(err, providers.ErrTransient) || !strings.Contains(err.Error(), "credentials") {
		t.Errorf("with a wrong password: %v", err)
	}
	gate.writeClouds(t, file, smallCredential, false)
	life(t, p, bootable(t))
}

// revoke makes all tokens that came by worthless. Services believe for minutes
// what keystone once said of a token; so from now on the proxy refuses them, too.
func revoke(tb testing.TB, gate *proxy) {
	tb.Helper()
	gate.mu.Lock()
	defer gate.mu.Unlock()
	for token := range gate.tokens {
		if gate.revoked[token] {
			continue
		}
		req, err := http.NewRequestWithContext(tb.Context(), http.MethodDelete, gate.targets["identity"]+"/v3/auth/tokens", nil)
		if err != nil {
			tb.Fatal(err)
		}
		req.Header.Set("X-Auth-Token", token)
		req.Header.Set("X-Subject-Token", token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			tb.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusNoContent {
			tb.Fatalf("revoke: %s, %v", resp.Status, err)
		}
		gate.revoked[token] = true
	}
}

// The credential that an operator should use does all that a password does, and Keystone tells
// its user when it ends.
func TestApplicationCredential(t *testing.T) {
	empty(t, smallCredential)
	p := open(t, section(smallCredential), cloudsFile())
	life(t, p, bootable(t))
	want := providers.End{Use: providers.EndCredential, Name: "small", At: time.Date(2099, time.May, 6, 7, 8, 9, 0, time.UTC)}
	if ends := p.Ends(); len(ends) != 1 || ends[0] != want {
		t.Errorf("Ends told %+v, want %+v", ends, want)
	}
}
