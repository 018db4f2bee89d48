package recipe

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// checkPath refuses what ZooKeeper would refuse, before anything is sent.
func checkPath(path string) error {
	switch {
	case !strings.HasPrefix(path, "/"):
		return fmt.Errorf("check path %q: %w: not absolute", path, ErrBadPath)
	case path == "/":
		return nil
	case strings.HasSuffix(path, "/"):
		return fmt.Errorf("check path %q: %w: ends with a slash", path, ErrBadPath)
	case !utf8.ValidString(path):
		return fmt.Errorf("check path %q: %w: not UTF-8", path, ErrBadPath)
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return fmt.Errorf("check path %q: %w: empty or relative name", path, ErrBadPath)
		}
	}
	if strings.IndexFunc(path, forbiddenRune) >= 0 {
		return fmt.Errorf("check path %q: %w: control character", path, ErrBadPath)
	}
	return nil
}

// checkNew checks the path of a node to create. That of a sequential node may
// end with a slash: the number alone is its name then.
func checkNew(path string, mode Mode) error {
	if mode&Sequential != 0 {
		path = strings.TrimSuffix(path, "/")
	}
	return checkPath(path)
}

// forbiddenRune reports the characters that ZooKeeper rules out. It looks at UTF-16,
// in which those beyond the first plane are made of two that it refuses.
func forbiddenRune(r rune) bool {
	return r < 0x20 || (r >= 0x7f && r <= 0x9f) || (r >= 0xd800 && r <= 0xf8ff) || r >= 0xfff0
}

// splitPath returns the parent and the last name of path.
func splitPath(path string) (parent, name string) {
	at := strings.LastIndexByte(path, '/')
	if at <= 0 {
		return "/", path[at+1:]
	}
	return path[:at], path[at+1:]
}

// joinPath returns the path of the child name of parent.
func joinPath(parent, name string) string {
	if parent == "/" {
		return "/" + name
	}
	return parent + "/" + name
}
