package recipe

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
)

// kazooContender is how kazoo's Lock finds the contenders in a directory.
var kazooContender = regexp.MustCompile(`(?:__lock__)(-?\d{10})$`)

func FuzzLockSeq(f *testing.F) {
	for _, name := range []string{
		"", "lock", "__lock__", "__lock__0000000000", "6f__lock__0000000012", "6f__lock__-2147483648", "__lock__--000000000",
		"__lock__00000000000", "x__lock____lock__0000000001", "__lock__000000000\n", "__lock__\xff000000000", strings.Repeat("9", 1<<12),
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		seq := ""
		if m := kazooContender.FindStringSubmatch(name); m != nil {
			seq = m[1]
		}
		if got := lockSeq(name); got != seq {
			t.Errorf("%q has number %q, kazoo finds %q", name, got, seq)
		}
	})
}

func FuzzParseClaim(f *testing.F) {
	for _, name := range []string{
		"", "a__claim__1__0000000000", "__claim__99__-2147483648", "__claim__-1__0000000000", "__claim__1__1", "__claim__1__0000000000x",
		"a__claim__+1__0000000000", "a__claim__01__0000000000", "a__claim__9223372036854775808__0000000000", "a__claim__1\x00__0000000000",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		c, ok := parseClaim(name)
		if !ok {
			return
		}
		if c.Weight < 1 || c.Name != name || !isSeq(c.seq) || !strings.Contains(name, semMark) {
			t.Errorf("%q is %+v", name, c)
		}
	})
}

func FuzzCheckPath(f *testing.F) {
	for _, path := range []string{"", "/", "/a", "/a/b", "a", "/a/", "//", "/.", "/..", "/a/./b", "/\x00", "/\u007f", "/é", "/\xff", "/\ue000"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if checkPath(path) != nil || path == "/" {
			return
		}
		parent, name := splitPath(path)
		if joinPath(parent, name) != path || name == "" || strings.Contains(name, "/") || checkPath(parent) != nil {
			t.Errorf("%q splits into %q and %q", path, parent, name)
		}
	})
}

// TestNoForeignError: whatever the client library may return, what leaves the
// package is ours.
func TestNoForeignError(t *testing.T) {
	t.Parallel()
	foreign := []error{
		zk.ErrConnectionClosed, zk.ErrUnknown, zk.ErrAPIError, zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion,
		zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists, zk.ErrNotEmpty, zk.ErrSessionExpired, zk.ErrInvalidACL,
		zk.ErrInvalidFlags, zk.ErrAuthFailed, zk.ErrClosing, zk.ErrNothing, zk.ErrSessionMoved, zk.ErrReconfigDisabled,
		zk.ErrBadArguments, zk.ErrNoServer, zk.ErrInvalidPath, zk.ErrShortBuffer, zk.ErrUnhandledFieldType,
	}
	for _, theirs := range foreign {
		err := translate("get", "/path", fmt.Errorf("wrapped: %w", theirs))
		ours := errors.Is(err, ErrServer)
		for _, s := range sentinels {
			ours = ours || errors.Is(err, s.ours)
		}
		if !ours || errors.Is(err, theirs) || !strings.Contains(err.Error(), "get /path") {
			t.Errorf("%v became %v", theirs, err)
		}
	}
	if translate("get", "/path", nil) != nil {
		t.Error("no error became one")
	}
}

// Mistake: an answer that is cut, or no answer at all, ends the process, or makes up results.
func FuzzDecodeReads(f *testing.F) {
	node := append([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'x'}, make([]byte, 68)...)
	names := []byte{0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 'a'}
	none := []byte{255, 255, 255, 255, 0, 255, 255, 255, 155, 255, 255, 255, 155}
	f.Add(slices.Concat(node, names, none))
	f.Add(slices.Concat(none, none, none))
	f.Add([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0, 0x7f, 255, 255, 255, 1})
	f.Add([]byte{255, 255, 255, 255, 1, 255, 255, 255, 255})
	reads := []Read{ReadData("/a"), ReadChildren("/b"), ReadData("/c")}
	f.Fuzz(func(t *testing.T, answer []byte) {
		results := make([]ReadResult, len(reads))
		decodeReads(answer, reads, results)
		size := 0
		for i, r := range results {
			if !r.known && (r.Err != nil || r.Data != nil || r.Children != nil) {
				t.Errorf("result %d is not known: %+v", i, r)
			}
			if r.known {
				size += 13 + len(r.Data) + len(r.Children)
			}
		}
		if size > len(answer) {
			t.Errorf("%d bytes of results from %d", size, len(answer))
		}
	})
}
