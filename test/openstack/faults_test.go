package openstack_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"poolkeeper/providers"
)

// Whatever happens to every third call or so, an image is uploaded, a node launched,
// and both are deleted; the record of calls shows that the faults were met.
func TestFaults(t *testing.T) {
	empty(t, smallCloud)
	image := bootable(t)
	for name, fault := range map[string]func(*proxy, call) mishap{
		"401":             func(*proxy, call) mishap { return answer(401) },
		"429 Retry-After": func(*proxy, call) mishap { return answer(429, "Retry-After", "1") },
		"500":             func(*proxy, call) mishap { return answer(500) },
		"503":             func(*proxy, call) mishap { return answer(503) },
		"reset":           func(*proxy, call) mishap { return cut },
		"lost answer":     func(p *proxy, c call) mishap { return deaf(p.targets[c.Service]) },
		"slow":            func(*proxy, call) mishap { return slow(2 * time.Second) },
		"409 of a deletion": func(_ *proxy, c call) mishap {
			if c.Method == http.MethodDelete && c.Service == "compute" && c.Try == 1 {
				return answer(409)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			gate, file := interpose(t)
			p := open(t, section(smallCloud), file)
			met := 0
			gate.inject(func(c call) mishap {
				// Data is sent once, and a token refused again is a wrong password.
				data := strings.HasSuffix(c.Path, "/file") && name != "429 Retry-After" && name != "401"
				if c.N%every(name) != 0 || data || strings.HasSuffix(c.Path, "/tokens") && name == "401" {
					return nil
				}
				bad := fault(gate, c)
				if bad != nil {
					met++
				}
				return bad
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

// every is how many calls there are to a fault. A renewed token is paid with
// another call, and keystone is slow.
func every(name string) int {
	switch name {
	case "401":
		return 6
	case "409 of a deletion":
		return 1
	}
	return 3
}

// life is that of an image and a node.
func life(t *testing.T, p providers.Provider, file string) {
	t.Helper()
	image, err := p.UploadImage(t.Context(), describe(t, p.Name(), file))
	if err != nil {
		t.Fatal(err)
	}
	id, err := p.CreateNode(t.Context(), spec(p.Name(), image))
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

// An upload that breaks in the middle leaves nothing in Glance.
func TestBrokenUpload(t *testing.T) {
	empty(t, smallCloud)
	image := bootable(t)
	for name, bad := range map[string]mishap{
		"reset":   middle(500_000),
		"refused": answer(401),
	} {
		gate, file := interpose(t)
		p := open(t, section(smallCloud), file)
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
}

// A token that keystone has revoked is replaced, with the credentials that
// clouds.yaml holds by then: here another kind of them.
func TestRotation(t *testing.T) {
	empty(t, smallCloud)
	gate, file := interpose(t)
	p := open(t, section(smallCloud), file)
	if _, err := p.ListNodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	revoke(t, gate)
	if _, err := p.ListNodes(t.Context()); err != nil {
		t.Errorf("after the revocation: %v", err)
	}
	gate.writeClouds(t, file, func(auth map[string]any) { auth["password"] = "wrong" })
	revoke(t, gate)
	if _, err := p.ListNodes(t.Context()); !errors.Is(err, providers.ErrTransient) || !strings.Contains(err.Error(), "credentials") {
		t.Errorf("with a wrong password: %v", err)
	}
	gate.writeClouds(t, file, nil)
	life(t, p, bootable(t))
}

// revoke makes all tokens that came by worthless. Services believe for minutes
// what keystone once said of a token; so from now on the proxy refuses them, too.
func revoke(t *testing.T, gate *proxy) {
	t.Helper()
	gate.mu.Lock()
	defer gate.mu.Unlock()
	for token := range gate.tokens {
		if gate.revoked[token] {
			continue
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, gate.targets["identity"]+"/v3/auth/tokens", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Auth-Token", token)
		req.Header.Set("X-Subject-Token", token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusNoContent {
			t.Fatalf("revoke: %s, %v", resp.Status, err)
		}
		gate.revoked[token] = true
	}
}

// The credential that an operator should use does all that a password does.
func TestApplicationCredential(t *testing.T) {
	empty(t, smallCredential)
	life(t, open(t, section(smallCredential), cloudsFile()), bootable(t))
}
