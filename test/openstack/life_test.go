package openstack_test

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

var nodes atomic.Int64 // of node ids given so far

// describe makes the upload of a file.
func describe(tb testing.TB, provider, path string) providers.ImageUpload {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	short, long := md5.New(), sha256.New()
	size, err := io.Copy(io.MultiWriter(short, long), f)
	if err != nil {
		tb.Fatal(err)
	}
	return providers.ImageUpload{
		Name: "image-" + provider, Path: path, Format: "qcow2", Size: size,
		MD5: hex.EncodeToString(short.Sum(nil)), SHA256: hex.EncodeToString(long.Sum(nil)),
		Metadata: map[string]string{providers.MetaProvider: provider, providers.MetaBuild: "0000000001", providers.MetaUpload: "0000000001"},
	}
}

// spec is the request of one node.
func spec(provider, image string) providers.NodeSpec {
	id := fmt.Sprintf("%010d", time.Now().Unix()%1_000_000*10_000+nodes.Add(1))
	return providers.NodeSpec{
		NodeID: id, Hostname: "np" + id, Pool: "main", Label: "tiny", ImageID: image, Format: "qcow2",
		Metadata: map[string]string{
			providers.MetaProvider: provider, providers.MetaNode: id, providers.MetaPool: "main",
		},
	}
}

// upload uploads an image and removes it when the test is over.
func upload(t *testing.T, p providers.Provider, path string) string {
	t.Helper()
	id, err := p.UploadImage(t.Context(), describe(t, p.Name(), path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, func() error { return p.DeleteImage(aside(t), id) }) })
	return id
}

// launch launches a node and removes it when the test is over.
func launch(t *testing.T, p providers.Provider, node providers.NodeSpec) providers.Instance {
	t.Helper()
	id, err := p.CreateNode(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, func() error { return p.DeleteNode(aside(t), id) }) })
	i, err := p.WaitNode(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// empty removes what an earlier run, killed perhaps, left in a cloud. TestSiteBadInput ends while the builder tries
// once more to upload for its provider mistaken.
func empty(tb testing.TB, cloud string) {
	tb.Helper()
	mistaken := section(cloud)
	mistaken.Name = "mistaken"
	for _, cfg := range []configs.Provider{section(cloud), mistaken} {
		emptyOf(tb, open(tb, cfg, cloudsFile()))
	}
}

// emptyOf removes what is a provider's own.
func emptyOf(tb testing.TB, p providers.Provider) {
	tb.Helper()
	nodes, nodeErr := p.ListNodes(tb.Context())
	images, imageErr := p.ListImages(tb.Context())
	if err := errors.Join(nodeErr, imageErr); err != nil {
		tb.Fatal(err)
	}
	for _, n := range nodes {
		remove(tb, func() error { return p.DeleteNode(tb.Context(), n.ExternalID) })
	}
	for _, i := range images {
		remove(tb, func() error { return p.DeleteImage(tb.Context(), i.ExternalID) })
	}
}
