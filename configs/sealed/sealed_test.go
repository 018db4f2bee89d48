package sealed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"poolkeeper/configs/yamltext"
)

// newKeys is a key file that was written and read.
func newKeys(t *testing.T) *Keys {
	t.Helper()
	k, err := New(filepath.Join(t.TempDir(), "fleet.key"))
	if err != nil {
		t.Fatal(err)
	}
	return stored(t, k)
}

// stored writes keys and reads them.
func stored(t *testing.T, k *Keys) *Keys {
	t.Helper()
	if err := os.WriteFile(k.File(), k.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := Read(k.File())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func seal(t *testing.T, k *Keys, place, value string) string {
	t.Helper()
	text, err := Seal(k.Recipients()[0], place, value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What was sealed is what is opened, at its place, whatever YAML does to the text.
func TestOpen(t *testing.T) {
	k := newKeys(t)
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[^\x00]+`).Draw(t, "value")
		text, err := Seal(k.Recipients()[0], "a.b", value)
		if err != nil {
			t.Fatal(err)
		}
		if !Is(text) || strings.ContainsAny(text, " \"'#,[]{}\n") || Recipient(text) != k.Recipients()[0] {
			t.Fatalf("sealed as %q", text)
		}
		folded := text[:40] + "\n  " + text[40:] + "\n"
		for _, one := range []string{text, folded} {
			if got, err := k.Open(one, "a.b"); err != nil || got != value {
				t.Fatalf("opened as %q, %v", got, err)
			}
		}
		var asYAML map[string]string
		if err := yaml.Unmarshal([]byte("{a: "+text+"}"), &asYAML); err != nil || asYAML["a"] != text {
			t.Fatalf("YAML reads %v, %v", asYAML, err)
		}
	})
}

// A value opens nowhere else, with no other key, and not when a letter of it was changed;
// and no error tells it.
func TestNotOpened(t *testing.T) {
	k, other := newKeys(t), newKeys(t)
	const secret = "hunter2-hunter2"
	text := seal(t, k, "clouds.ovh.auth.password", secret)
	unread, err := Read(filepath.Join(t.TempDir(), "none"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of no file = %v", err)
	}
	body := strings.LastIndexByte(text, ':') + 1
	letter := "A"
	if text[body+300] == 'A' {
		letter = "B"
	}
	changed := text[:body+300] + letter + text[body+301:]
	for name, c := range map[string]struct {
		keys        *Keys
		text, place string
		want        error
		says        string
	}{
		"elsewhere":      {k, text, "diskimages[debian].env-vars.LEAK", ErrElsewhere, "clouds.ovh.auth.password"},
		"no key file":    {nil, text, "clouds.ovh.auth.password", ErrNoKey, "secret-key"},
		"no such file":   {unread, text, "clouds.ovh.auth.password", fs.ErrNotExist, unread.File()},
		"another key":    {other, text, "clouds.ovh.auth.password", ErrNoKey, k.Recipients()[0] + ", which " + other.File()},
		"claimed key":    {other, strings.Replace(text, k.Recipients()[0], other.Recipients()[0], 1), "clouds.ovh.auth.password", ErrDamaged, "changed"},
		"changed":        {k, changed, "clouds.ovh.auth.password", ErrDamaged, "changed"},
		"cut off":        {k, text[:len(text)-20], "clouds.ovh.auth.password", ErrDamaged, ""},
		"a later form":   {k, "sealed:v2:x", "clouds.ovh.auth.password", ErrDamaged, "does not know"},
		"nothing inside": {k, "sealed:v1:", "clouds.ovh.auth.password", ErrDamaged, "whole"},
	} {
		got, err := c.keys.Open(c.text, c.place)
		if got != "" || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %q, %v, want %v", name, got, err, c.want)
		}
	}
	for _, text := range []string{"", "sealed", "sealed:", "sealed: v1:", "xsealed:v1:"} {
		if Is(text) {
			t.Errorf("%q counts as sealed", text)
		}
	}
	for _, bad := range [][2]string{{"age1x", "v"}, {k.Recipients()[0], ""}, {k.Recipients()[0], "a\x00"}, {k.Recipients()[0], "\xff"}, {k.Recipients()[0], strings.Repeat("x", maxValue+1)}} {
		if text, err := Seal(bad[0], "a", bad[1]); !errors.Is(err, ErrValue) || text != "" {
			t.Errorf("Seal of a bad value = %q, %v", text, err)
		}
	}
}

// The length of the text does not tell that of a password.
func TestLengthIsHidden(t *testing.T) {
	k := newKeys(t)
	if a, b := seal(t, k, "a", "short"), seal(t, k, "a", "quite a bit longer"); len(a) != len(b) {
		t.Errorf("%d and %d letters", len(a), len(b))
	}
}

// While keys are changed both open; when the old one has gone, only the new one.
func TestTwoKeys(t *testing.T) {
	old := newKeys(t)
	before := seal(t, old, "a", "value")
	both, err := old.WithNew()
	if err != nil {
		t.Fatal(err)
	}
	both = stored(t, both)
	after := seal(t, both, "a", "value")
	if len(both.Recipients()) != 2 || both.Recipients()[1] != old.Recipients()[0] || Recipient(after) != both.Recipients()[0] {
		t.Fatalf("%v after %v", both.Recipients(), old.Recipients())
	}
	newest := stored(t, both.Newest())
	for _, c := range []struct {
		keys *Keys
		text string
		want error
	}{{both, before, nil}, {both, after, nil}, {newest, after, nil}, {newest, before, ErrNoKey}, {old, after, ErrNoKey}} {
		if got, err := c.keys.Open(c.text, "a"); !errors.Is(err, c.want) || (err == nil) != (got == "value") {
			t.Errorf("opened as %q, %v, want %v", got, err, c.want)
		}
	}
}

// A key file that others may read is refused by file and mode; one that is damaged is not
// quoted; and nothing prints a key.
func TestKeyFiles(t *testing.T) {
	k := newKeys(t)
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o660, 0o644, 0o610} {
		if err := os.Chmod(k.File(), mode); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%s has mode %#o", k.File(), mode)
		if _, err := Read(k.File()); !errors.Is(err, ErrKeyFile) || !strings.Contains(err.Error(), want) {
			t.Errorf("Read = %v, want %s", err, want)
		}
	}
	if err := os.Chmod(k.File(), 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(k.File()); err != nil {
		t.Errorf("Read with mode 0400: %v", err)
	}
	secret := k.list[0].String()
	for _, text := range []string{"", "# nothing\n", secret[:len(secret)-1] + "\n", "# one\n" + secret + "\nhunter2\n"} {
		file := filepath.Join(t.TempDir(), "bad.key")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(file)
		if !errors.Is(err, ErrKeyFile) || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), secret[:30]) {
			t.Errorf("Read of %q = %v", text, err)
		}
	}
	if _, err := Read(t.TempDir()); !errors.Is(err, ErrKeyFile) {
		t.Errorf("Read of a folder = %v", err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, k); strings.Contains(text, secret[20:30]) {
			t.Errorf("%s shows %s", verb, text)
		}
	}
}

// Who has read a key leaves no memory behind when it crashes, nor do its children: neither in
// a file nor, as with a limit of 0, in a pipe to the host's collector of cores.
func TestNoCoreDumps(t *testing.T) {
	newKeys(t)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &limit); err != nil || limit.Cur > 1 || limit.Max > 1 || os.Geteuid() == 0 && limit.Cur != 1 {
		t.Errorf("limit %v, %v", limit, err)
	}
}

// Where the limit is 0 and cannot be raised, as of a daemon that is not root, there is no core of
// the process at all. Mistake: one that does not read its own /proc any more, or begins no
// other program.
func TestNoCoreDumpsWhereTheLimitIsNone(t *testing.T) {
	if os.Getenv("SEALED_TEST_LIMITED") != "" {
		NoCoreDumps()
		var limit syscall.Rlimit
		dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		if errors.Join(err, syscall.Getrlimit(syscall.RLIMIT_CORE, &limit)) != nil || limit.Max != 0 || dumpable != 0 {
			t.Errorf("limit %v, dumpable %d, %v", limit, dumpable, err)
		}
		for _, name := range []string{"stat", "limits", "status", "mountinfo", "cgroup"} {
			if _, err := os.ReadFile("/proc/self/" + name); err != nil {
				t.Error(err)
			}
		}
		if open, err := os.ReadDir("/proc/self/fd"); err != nil || len(open) == 0 {
			t.Errorf("open files %v, %v", open, err)
		}
		if out, err := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^$").CombinedOutput(); err != nil {
			t.Errorf("another program: %v\n%s", err, out)
		}
		return
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close() //nolint:errcheck // only read
	child := exec.CommandContext(t.Context(), "sh", "-c", "ulimit -c 0 && exec /proc/self/fd/3 -test.run='^TestNoCoreDumpsWhereTheLimitIsNone$'")
	child.Dir, child.Env, child.ExtraFiles = "/", append(os.Environ(), "SEALED_TEST_LIMITED=1"), []*os.File{self}
	if os.Geteuid() == 0 { // who is root raises the limit
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// In a tree each value is opened where it is used: an alias or a merge moves no value.
func TestTree(t *testing.T) {
	k := newKeys(t)
	a, b := seal(t, k, "clouds.a.auth.password", "secret of a"), seal(t, k, "clouds.b.auth.password", "secret of b")
	region := seal(t, k, "clouds.a.regions[two].values.auth.token", "token of two")
	text := strings.NewReplacer("$A", a, "$B", b, "$R", region).Replace(`
a: &a {auth: &auth {user: me, password: &pw $A}, regions: [one, {name: two, values: {auth: {token: $R}}}]}
b: {<<: *a, auth: {<<: *auth, password: $B}, regions: []}
c: {<<: [{x: y}, *a], regions: []}
d: {auth: {user: *pw}}
e: {auth: {password: clear}}
f: &f {x: *f}
`)
	var root map[string]yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "secret of a", "b": "secret of b", "c": "", "d": "", "e": "clear"} {
		node := root[name]
		tree, opened, err := k.Tree(&node, yamltext.Path{}.Key("clouds").Key(name))
		if want == "" {
			if !errors.Is(err, ErrElsewhere) || !strings.Contains(err.Error(), "line ") || !strings.Contains(err.Error(), "clouds."+name+".") {
				t.Errorf("%s: %v, %v", name, opened, err)
			}
			continue
		}
		var entry struct {
			Auth struct{ User, Password string }
		}
		if err != nil || tree.Decode(&entry) != nil || entry.Auth.Password != want {
			t.Errorf("%s: %v, %v, %v", name, entry, opened, err)
		}
		if name == "b" && entry.Auth.User != "me" {
			t.Errorf("what b merges is lost: %v", entry)
		}
		if wantOpened := map[string]int{"a": 2, "b": 1}[name]; len(opened) != wantOpened {
			t.Errorf("%s: %d values opened, want %d", name, len(opened), wantOpened)
		}
	}
	node := root["f"]
	if _, _, err := k.Tree(&node, nil); err != nil {
		t.Errorf("an anchor in itself: %v", err)
	}
	// With a sealed value beside it the tree is copied: that took all memory.
	var whole yaml.Node
	if err := yaml.Unmarshal([]byte("g: &g {x: *g, y: "+a+"}\n"), &whole); err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.Tree(whole.Content[0], nil); !errors.Is(err, errAliases) || len(err.Error()) > 200 {
		t.Errorf("an anchor in itself, with a sealed value: %v", err)
	}
}

// The stacks that Go prints at a crash have the words of arguments in hex: while values are
// opened and sealed, none is a part of a value or of the key.
func TestStacksShowNothing(t *testing.T) {
	k := newKeys(t)
	const secret = "a-secret-that-is-long-enough-for-words"
	text := seal(t, k, "a", secret)
	key := reflect.ValueOf(k.list[0]).Elem().FieldByName("secretKey").Bytes()
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got, err := k.Open(text, "a"); err != nil || got != secret {
					t.Errorf("opened as %q, %v", got, err)
					return
				}
				seal(t, k, "a", secret)
			}
		})
	}
	var words []string
	for _, bytes := range [][]byte{key, []byte(secret)} {
		for at := range len(bytes) - 7 {
			words = append(words, fmt.Sprintf("0x%x", binary.LittleEndian.Uint64(bytes[at:])))
		}
	}
	stacks, inside := make([]byte, 1<<20), 0
	for range 100 {
		all := string(stacks[:runtime.Stack(stacks, true)])
		inside += strings.Count(all, "filippo.io/age")
		for _, word := range append(words, secret, k.list[0].String()) {
			if strings.Contains(all, word) {
				t.Fatalf("a stack shows %s of the secret", word)
			}
		}
	}
	close(stop)
	group.Wait()
	if inside == 0 {
		t.Error("no stack was taken while a value was opened")
	}
}

// What a key change seals anew is the same value, and is known as such until it is set: over
// further changes of the key, with the time of the first, and only to who can open it.
func TestResealedIsToBeChanged(t *testing.T) {
	keys, err := New(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	text := seal(t, keys, "a.b", "word")
	if _, is, err := keys.Unchanged(text, "a.b"); is || err != nil {
		t.Errorf("as it was set: %v, %v", is, err)
	}
	first := time.Unix(1_800_000_000, 0)
	for n := range 2 {
		next, err := keys.WithNew()
		if err != nil {
			t.Fatal(err)
		}
		if text, err = next.Reseal(next.Recipients()[0], text, "a.b", first.Add(time.Duration(n)*time.Hour)); err != nil {
			t.Fatal(err)
		}
		since, is, err := next.Unchanged(text, "a.b")
		if got, gone := next.Open(text, "a.b"); got != "word" || gone != nil || !is || err != nil || !since.Equal(first) {
			t.Errorf("sealed anew: %q, %v, %v, %v, %v", got, gone, since, is, err)
		}
		if _, _, err := keys.Unchanged(text, "a.b"); !errors.Is(err, ErrNoKey) {
			t.Errorf("without the key: %v", err)
		}
		if _, err := next.Reseal(next.Recipients()[0], text, "a.c", first); !errors.Is(err, ErrElsewhere) {
			t.Errorf("elsewhere: %v", err)
		}
		keys = next
	}
}
