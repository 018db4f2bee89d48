package figures

import (
	"os"
	"sync"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/kit"
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
		if text, err := os.ReadFile(path); err == nil {
			k.end, k.there = kit.CertificatesEnd(text, file.bundle)
		}
		if c.known == nil {
			c.known = map[string]known{}
		}
		c.known[path] = k
	}
	return k.end, k.there
}
