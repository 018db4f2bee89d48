package secret

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"poolkeeper/configs/sealed"
	"poolkeeper/configs/yamltext"
)

// SetCmd seals one value.
type SetCmd struct {
	File string `arg:"" help:"The file that the value stands in: the configuration, the secure file, clouds.yaml."`
	Path string `arg:"" help:"Where it stands: diskimages[NAME].env-vars.KEY, zookeeper-auth.password, clouds.NAME.auth.password."`
	From string `placeholder:"FILE" help:"Read the value from a file, not from the standard input."`
	To   string `placeholder:"age1…" help:"Seal to this public key; then no key file is needed."`
}

// Help is what the command's own help says.
func (*SetCmd) Help() string {
	return "The value is read from the standard input, without echo from a terminal, or from a file; never from the " +
		"command line, which other users of the host can see. A line break behind a single line is no part of it. What " +
		"stands at the path is replaced; what is missing on the way to it is added; all else of the file stays as it is."
}

// maxSecret is the most that is read of a value, in bytes.
const maxSecret = 1 << 20

// Run is the command.
func (c *SetCmd) Run(ctx context.Context, a *App, of *Cmd) error {
	sealed.NoCoreDumps() // with --to no key is read, which does so, too
	path, err := yamltext.ParsePath(c.Path)
	if err != nil {
		return err
	}
	if path.String() == "secret-key" {
		return fmt.Errorf("%s: %s: it names the key file, and cannot be sealed", c.File, path)
	}
	if _, _, err := c.read(a, of); err != nil { // before anything is typed
		return err
	}
	value, err := c.value(ctx, a)
	if err != nil {
		return err
	}
	if sealed.Is(value) {
		return fmt.Errorf("%s: %s: the value is sealed already: give what was sealed", c.File, path)
	}
	unlock, err := c.lock(ctx, a, of)
	if err != nil {
		return err
	}
	defer unlock()
	f, recipient, err := c.read(a, of)
	if err != nil {
		return err
	}
	a.Secrets.Add(value)
	text, err := c.seal(a, of, f, recipient, path.String(), value)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", f.name, path, err)
	}
	after, line, before, err := f.yaml.Put(path, text)
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	a.hasPrepared()
	if err := f.write(after); err != nil {
		return err
	}
	if before != nil && before.Value != "" && !sealed.Is(before.Value) {
		fmt.Fprintf(a.Stderr, "poolkeeper: warning: %s:%d: %s stood there in clear text: if that was the secret, change it where it is used, since copies and history keep it\n",
			f.name, before.Line, path)
	}
	if now, err := yamltext.Parse(after); err == nil {
		for _, other := range now.Uses(path) {
			fmt.Fprintf(a.Stderr, "poolkeeper: warning: %s:%d: %s is used at %s, too, by an anchor, and does not open there: set it there as well\n",
				f.name, line, path, other)
		}
	}
	_, err = fmt.Fprintf(a.Stdout, "%s:%d: %s: sealed to %s\n", f.name, line, path, recipient)
	return err
}

// seal is the sealed text of the value. The same value again, which a rotation has left to be
// changed, stays to be changed.
func (c *SetCmd) seal(a *App, of *Cmd, f *file, recipient, place, value string) (string, error) {
	for _, s := range f.values() {
		if s.Path.String() != place {
			continue
		}
		keys, err := of.keys(a)
		if err != nil {
			break // with --to none is needed
		}
		old, err := keys.Open(s.Value, place)
		_, unchanged, _ := keys.Unchanged(s.Value, place)
		if err == nil && unchanged && old == value {
			fmt.Fprintf(a.Stderr, "poolkeeper: warning: %s:%d: %s is what it was: it is still to be changed, since history keeps what an older key opens\n", f.name, s.Line, place)
			return keys.Reseal(recipient, s.Value, place, time.Now())
		}
	}
	return sealed.Seal(recipient, place, value)
}

// lock keeps other commands from the file, and from the key that the value is sealed to.
func (c *SetCmd) lock(ctx context.Context, a *App, of *Cmd) (unlock func(), err error) {
	names := []string{c.File}
	if c.To == "" {
		key, err := of.file(a)
		if err != nil {
			return nil, err
		}
		names = append(names, key)
	}
	return a.lockFolders(ctx, names...)
}

// read reads the file, and tells the public key to seal to.
func (c *SetCmd) read(a *App, of *Cmd) (f *file, recipient string, err error) {
	recipient = c.To
	if recipient == "" {
		keys, err := of.keys(a)
		if err != nil {
			return nil, "", err
		}
		recipient = keys.Recipients()[0]
	} else if err := sealed.CheckRecipient(recipient); err != nil {
		return nil, "", err
	}
	f, err = readFile(c.File)
	return f, recipient, err
}

// value reads the value.
func (c *SetCmd) value(ctx context.Context, a *App) (string, error) {
	from, name := a.Stdin, "the standard input"
	if c.From != "" {
		f, err := os.Open(c.From)
		if err != nil {
			return "", err
		}
		defer f.Close() //nolint:errcheck // only read
		from, name = f, c.From
	}
	text, err := readHidden(ctx, from, a.Stderr, fmt.Sprintf("Value of %s (it does not show; end it with Enter): ", c.Path))
	if err != nil {
		return "", fmt.Errorf("read the value from %s: %w", name, err)
	}
	if len(text) > maxSecret {
		return "", fmt.Errorf("read the value from %s: it is too long", name)
	}
	if line, cut := strings.CutSuffix(text, "\n"); cut && !strings.Contains(line, "\n") {
		text = strings.TrimSuffix(line, "\r")
	}
	switch {
	case text == "":
		return "", fmt.Errorf("read the value from %s: it is empty", name)
	case strings.HasPrefix(text, "-----BEGIN") && !strings.Contains(text, "\n"): // of a terminal one line is read
		return "", fmt.Errorf("read the value from %s: it is the first line of several: put them into a file, and give --from FILE", name)
	}
	return text, nil
}

// readHidden reads all of a reader; of a terminal one line, after a question, without echo.
func readHidden(ctx context.Context, from io.Reader, asks io.Writer, question string) (string, error) {
	f, ok := from.(*os.File)
	if !ok {
		text, err := io.ReadAll(io.LimitReader(from, maxSecret+1))
		return string(text), err
	}
	fd := int(f.Fd())
	old, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil { // no terminal
		text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
		return string(text), err
	}
	silent := *old
	silent.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(fd, unix.TCSETSF, &silent); err != nil {
		return "", fmt.Errorf("switch off echo: %w", err)
	}
	defer func() {
		_ = unix.IoctlSetTermios(fd, unix.TCSETSF, old) // as it was
		fmt.Fprintln(asks)
	}()
	fmt.Fprint(asks, question)
	lines := make(chan string, 1)
	go func() {
		var line []byte
		one := make([]byte, 1)
		for len(line) <= maxSecret {
			if n, err := f.Read(one); n == 0 || err != nil {
				break
			}
			if line = append(line, one[0]); one[0] == '\n' {
				break
			}
		}
		lines <- string(line)
	}()
	select {
	case line := <-lines:
		return line, nil
	case <-ctx.Done():
		return "", errors.New("interrupted")
	}
}
