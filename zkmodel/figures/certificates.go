package figures

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"sync"
	"time"

	"poolkeeper/configs"
)

// certificateFile is a file of certificates, and what it is for. In a bundle some may have
// ended: what is trusted ends with the last of them.
type certificateFile struct {
	use, path string
	bundle    bool
}

// filesOf are the files of certificates that a configuration names.
func filesOf(cfg *configs.Config) []certificateFile {
	if cfg.ZooKeeper.TLS == nil {
		return nil
	}
	tls := cfg.ZooKeeper.TLS
	files := []certificateFile{{"zookeeper", tls.Cert, false}}
	if tls.CA != tls.Cert {
		files = append(files, certificateFile{"zookeeper", tls.CA, true})
	}
	return files
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

// end is when the first certificate of a file ends, of a bundle the last; there is false
// where there is none.
func (c *certificates) end(file certificateFile) (end time.Time, there bool) {
	path := file.path
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return time.Time{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k, read := c.known[path]
	if !read || k.size != info.Size() || !k.changed.Equal(info.ModTime()) {
		k = known{size: info.Size(), changed: info.ModTime()}
		k.end, k.there = endOf(file)
		if c.known == nil {
			c.known = map[string]known{}
		}
		c.known[path] = k
	}
	return k.end, k.there
}

// endOf reads a file of PEM blocks.
func endOf(file certificateFile) (end time.Time, there bool) {
	data, err := os.ReadFile(file.path)
	if err != nil {
		return time.Time{}, false
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil {
			continue
		}
		if !there || certificate.NotAfter.Before(end) != file.bundle {
			end, there = certificate.NotAfter, true
		}
	}
	return end, there
}
