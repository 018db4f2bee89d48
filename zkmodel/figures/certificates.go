package figures

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"sync"
	"time"

	"poolkeeper/configs"
)

// certificateFile is a file of certificates, and what it is for.
type certificateFile struct{ use, path string }

// filesOf are the files of certificates that a configuration names.
func filesOf(cfg *configs.Config) []certificateFile {
	if cfg.ZooKeeper.TLS == nil {
		return nil
	}
	return []certificateFile{{"zookeeper", cfg.ZooKeeper.TLS.Cert}, {"zookeeper", cfg.ZooKeeper.TLS.CA}}
}

// certificates remembers when the certificates of files end, and reads a file again only
// when it has changed.
type certificates struct {
	mu    sync.Mutex
	known map[string]known
}

type known struct {
	size    int64
	changed time.Time
	end     time.Time
	there   bool
}

// end is when the first certificate of a file ends; there is false where there is none.
func (c *certificates) end(path string) (end time.Time, there bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return time.Time{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k, read := c.known[path]
	if !read || k.size != info.Size() || !k.changed.Equal(info.ModTime()) {
		k = known{size: info.Size(), changed: info.ModTime()}
		k.end, k.there = firstEnd(path)
		if c.known == nil {
			c.known = map[string]known{}
		}
		c.known[path] = k
	}
	return k.end, k.there
}

// firstEnd reads a file of PEM blocks.
func firstEnd(path string) (end time.Time, there bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return time.Time{}, false
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil {
			continue
		}
		if !there || certificate.NotAfter.Before(end) {
			end, there = certificate.NotAfter, true
		}
	}
	return end, there
}
