package fleet

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/crypto/ssh"

	"poolkeeper/configs"
	"poolkeeper/providers/fake"
	"poolkeeper/test/sshd"
)

// clouds are the providers, and the first bytes of their machines' addresses.
var clouds = map[string]string{"north": "127.1.0.", "south": "127.2.0."}

// machines is how many addresses a cloud has: those of a /27 without the first and the last.
const machines = 30

// check is the command that tells a good machine: it looks up which image the machine has, and
// whether that is named as a bad one.
const check = `#!/bin/sh
set -eu
cd "$(dirname "$0")"
set -- $SSH_CONNECTION
image=$(grep -h "\"Address\":\"$3\"" clouds/*.log | tail -n 1 | sed 's/.*"Image":"\([^"]*\)".*/\1/')
marks=$(grep -h "\"ExternalID\":\"$image\"" clouds/*.log | tail -n 1)
mark() { printf %s "$marks" | sed "s/.*\"$1\":\"\([^\"]*\)\".*/\1/"; }
name=$(mark poolkeeper_image_name)-$(mark nodepool_build_id)
echo "$3 has $image, $name"
[ -n "$marks" ] && [ ! -e "bad/$name" ]
`

// serveMachines answers for all machines there may be, at one port, and writes the key that
// they let in.
func serveMachines(t *testing.T, keyFile string) (port int) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keyFile, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	hostKey := sshd.Key(t, "ed25519")
	for _, network := range clouds {
		for i := range machines {
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("%s%d:%d", network, i+1, port))
			if err != nil {
				t.Fatal(err)
			}
			port = l.Addr().(*net.TCPAddr).Port
			sshd.Exec(t, l, "root", key, hostKey)
		}
	}
	return port
}

// cloud is what a provider has.
func (s *site) cloud(name string) *fake.Provider {
	s.Helper()
	p, err := fake.New(configs.Provider{Name: name, Settings: &configs.FakeDriver{Dir: s.path("clouds")}}, hclog.NewNullLogger())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = p.Close() })
	return p
}
