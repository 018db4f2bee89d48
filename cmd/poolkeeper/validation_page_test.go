package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/configs"
	shown "poolkeeper/test/pages"
	"poolkeeper/test/records"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// The configuration of docs/validation.md is taken, and its commands, as they stand there,
// print what it says and do it to uploads under trial alone. Mistakes: a page that shows
// what no command says; a promotion of what is not tried; a rejection that writes a record
// which a builder holds.
func TestValidationPage(t *testing.T) {
	blocks, err := shown.Read("../../docs/validation.md")
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(zktest.Shared(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	root := zktest.Root(t)
	var config string
	for _, b := range blocks {
		if b.Lang == "yaml" {
			const provider = "  - {name: %s, driver: fake, diskimages: [{name: debian-12}]}\n"
			text := fmt.Sprintf("zookeeper-servers: [{host: %s, port: %s, chroot: %s}]\nimages-dir: %s\n%sproviders:\n"+provider+provider,
				host, port, root, t.TempDir(), b.Text, "north", "south")
			config = filepath.Join(t.TempDir(), "nodepool.yaml")
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	cfg, err := configs.Load(config, configs.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if v := cfg.DiskImages[0].Validate; v == nil || len(v.Checks) != 3 || v.Any || v.Serve {
		t.Fatalf("the page configures %+v", v)
	}
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store := zkmodel.NewStore(session, nil)
	if err := records.BuiltAndUploaded(t.Context(), store, "debian-12"); err != nil {
		t.Fatal(err)
	}
	var tried []*zkmodel.Upload
	for _, p := range []string{"north", "south"} {
		lock, err := store.LockUploads(t.Context(), "debian-12", "0000000001", p) // held, as a builder does
		if err != nil {
			t.Fatal(err)
		}
		u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: "debian-12", Build: "0000000001", Provider: p}}
		err = store.CreateUpload(t.Context(), lock, u)
		u.ExternalID = zkmodel.TextValue("id")
		if err := errors.Join(err, store.BeginValidation(t.Context(), lock, u, &zkmodel.Validation{ExternalID: "id"})); err != nil {
			t.Fatal(err)
		}
		tried = append(tried, u)
	}
	if ran := printsAsShown(t, config, blocks); ran != 2 {
		t.Errorf("%d commands ran", ran)
	}
	for i, promoted := range []bool{true, false} {
		v, err := store.Validation(t.Context(), tried[i].UploadKey)
		if err != nil || (v.Promoted != nil) != promoted {
			t.Errorf("%s: %+v, %v", tried[i].Provider, v, err)
		}
		if now, err := store.Upload(t.Context(), tried[i].UploadKey); err != nil || now.Stat.Version != tried[i].Stat.Version {
			t.Errorf("the record in %s was written by a command: %v", tried[i].Provider, err)
		}
	}
	lists := map[string][]string{
		"image-list --detail":   {"| Trial ", "| waiting for 00:00:00:0"},
		"image-list -o json":    {`"trial": {"state":"waiting","why":"promoted by `},
		"image-status --detail": {"build 0000000001 at north is waiting for 00:00:00:0", "build 0000000001 at south is waiting"},
		"image-status -o json":  {`"trials": [{"build":"0000000001","provider":"north","upload":"0000000001","state":"waiting"`},
	}
	for line, wants := range lists {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"-c", config}, strings.Fields(line)...), &stdout, &stderr)
		for _, want := range wants {
			if code != 0 || !strings.Contains(stdout.String(), want) {
				t.Errorf("%s: exit %d, no %q in\n%s%s", line, code, want, &stdout, &stderr)
			}
		}
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-c", config, "explain", "--all", "debian-12"}, &stdout, &stderr)
	for _, want := range []string{"it serves now: promoted by", "it goes: its build was rejected by"} {
		if code != 0 || !strings.Contains(stdout.String(), want) {
			t.Errorf("explain: exit %d, no %q in\n%s%s", code, want, &stdout, &stderr)
		}
	}
}
