package admin

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/configs/sealed"
	"poolkeeper/zkmodel/fleet"
)

// pushFlags are those of commands that push.
type pushFlags struct {
	Key     string        `required:"" placeholder:"FILE" help:"The key file to sign with, as config keygen makes it."`
	Message string        `short:"m" help:"What the history says of it."`
	Yes     bool          `short:"y" help:"Do not ask, whatever will be deleted or stopped."`
	Wait    bool          `help:"Wait until every daemon of the fleet runs it. Fails when one refuses it."`
	Timeout time.Duration `default:"1m" help:"How long to wait, with --wait, for another push that is under way, and for decisions of daemons (${default})."`
	Force   bool          `help:"Switch at once, without waiting for the decisions of daemons that are under way, and whatever number --after makes."`
	Clear   bool          `name:"with-secrets" help:"Push it although it has secrets in clear, for all who can read ZooKeeper."`
	After   uint64        `placeholder:"N" help:"Number it after this version: where the tree has lost versions that daemons run."`
}

// configPushCmd pushes a file.
type configPushCmd struct {
	File string `arg:"" help:"The configuration, as a daemon would read it with -c."`
	pushFlags
}

// Help is what the command's own help says.
func (configPushCmd) Help() string {
	return "The file is checked as config-validate does. What the change would delete or stop is printed, and asked for; what is in use " +
		"stays all the same until it is accepted (config-accept zk:) or no longer used. Where ZooKeeper is, -c says: a file, " +
		"or zk: for the one that --host-config names."
}

// Run is the command.
func (c configPushCmd) Run(ctx context.Context, a *app.App) error {
	p, err := c.begin(a)
	if err != nil {
		return err
	}
	p.name = c.File
	if p.text, err = os.ReadFile(c.File); err != nil {
		return err
	}
	return withFleet(ctx, a, func(ctx context.Context, t fleetTree) error { return p.push(ctx, a, t) })
}

// pusher is one push.
type pusher struct {
	pushFlags
	key  *fleet.Key
	by   string
	name string // of the text
	text []byte
	of   uint64 // the version that the text is of; 0 when it is a file's
}

// ErrAfter is for --after: no daemon would take what --after makes.
var ErrAfter = errors.New("--after is wrong")

// ErrUnsure says that what the tree has gives no number for the next version.
var ErrUnsure = errors.New("the number of the next version is not sure")

// begin reads the key.
func (f pushFlags) begin(a *app.App) (*pusher, error) {
	key, err := fleet.ReadKey(f.Key)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	name := "unknown"
	if us, err := user.Current(); err == nil {
		name = us.Username
	}
	if signers, err := a.Signers(); err != nil {
		return nil, err
	} else if signers != nil && !slices.ContainsFunc(signers, func(s ed25519.PublicKey) bool { return configs.SignerText(s) == key.Public() }) {
		return nil, fmt.Errorf("%s: its public half, %s, is not among config-signers of %s: no daemon would take what it signs", f.Key, key.Public(), a.Flags.Secure)
	}
	return &pusher{pushFlags: f, key: key, by: name + "@" + host}, nil
}

// signers are those whose versions count here: the listed ones, or who pushes alone.
func (p *pusher) signers(t fleetTree) []ed25519.PublicKey {
	own, err := configs.ParseSigner(p.key.Public())
	if err != nil || t.host.ConfigSigners != nil {
		return t.host.ConfigSigners
	}
	return []ed25519.PublicKey{own}
}

// push checks, asks, and pushes.
func (p *pusher) push(ctx context.Context, a *app.App, t fleetTree) error {
	next, warnings, err := configs.Check(p.name, configs.Options{SecurePath: a.Flags.Secure, Validate: true, Keyless: true, Text: p.text})
	for _, warning := range warnings {
		fmt.Fprintln(a.Stderr, "poolkeeper: warning:", warning)
	}
	if err != nil {
		return err
	}
	if _, err = a.KeepSecret(next, nil); err != nil {
		return err
	}
	if names := inClear(p.name, p.text); len(names) > 0 && !p.Clear {
		return fmt.Errorf("%s: all who can read ZooKeeper would read %s: seal it (secret set), move it to the secure file or the host's, or give --with-secrets",
			p.name, strings.Join(names, ", "))
	}
	draft, current, err := p.draft(ctx, t)
	if err != nil {
		return err
	}
	if current != nil && p.After == 0 && current.Digest == fleet.Digest(p.text) {
		if _, err := t.Text(ctx, current); err == nil {
			_, err := fmt.Fprintf(a.Stdout, "Version %d has this text already; nothing was pushed.\n", current.Number)
			return err
		}
	}
	if err := p.confirm(ctx, a, t, p.running(ctx, a, t, current), next); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, p.Timeout, fmt.Errorf("not in %s", p.Timeout))
	defer cancel()
	v, err := t.Push(waiting, p.key, draft)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "Version %d is pushed.\n", v.Number)
	return p.follow(waiting, a, t, v)
}

// draft is what is to be pushed behind what there is, and the current version if it is one
// that a signer who may push has signed.
func (p *pusher) draft(ctx context.Context, t fleetTree) (fleet.Draft, *fleet.Version, error) {
	known := func(v *fleet.Version) bool { return v.Verify(p.signers(t)) == nil }
	current, seen, err := t.Look(ctx)
	d := fleet.Draft{Text: p.text, By: p.by, Message: p.Message, Of: p.of, Seen: seen, Known: known, Force: p.Force, Now: time.Now()}
	if err != nil && !errors.Is(err, fleet.ErrUndecodable) {
		return d, nil, err
	}
	wrong := err
	if current != nil && !known(current) {
		wrong, current = current.Verify(p.signers(t)), nil
	}
	members, err := t.Members(ctx)
	if err != nil {
		return d, nil, err
	}
	if current != nil {
		d.After, d.Predecessor = current.Number, current.ID()
	}
	newest, err := p.newest(ctx, t, d.After, members, known)
	if err != nil {
		return d, nil, err
	}
	if p.After > 0 {
		d.After, d.Predecessor = p.After, p.predecessor(ctx, t, members, known)
		return d, current, p.sane(max(newest.Number, numberOf(current)), newest)
	}
	switch {
	case wrong != nil:
		return d, nil, fmt.Errorf("%w: the current one: %w; --after N says it (daemons tell of version %d)", ErrUnsure, wrong, newest.Number)
	case newest.Number > d.After:
		return d, nil, fmt.Errorf("%w: ZooKeeper has version %d, and the %s %s tells of %d: --after %d says it",
			ErrUnsure, d.After, newest.Kind, newest.Host, newest.Number, newest.Number)
	}
	return d, current, nil
}

// newest is who tells of the highest number of a version: the history, by what is signed, or a
// daemon. What a daemon tells anybody may write, and counts only where it is likely.
func (p *pusher) newest(ctx context.Context, t fleetTree, current uint64, members []fleet.Member, known func(*fleet.Version) bool) (fleet.Member, error) {
	all, err := t.History(ctx)
	newest := fleet.Member{Kind: "history"}
	for _, e := range all {
		if e.Version != nil && known(e.Version) && e.Version.Number > newest.Number {
			newest.Number = e.Version.Number
		}
	}
	signed := max(newest.Number, current)
	for _, m := range members {
		if m.Err == nil && m.Number > newest.Number && m.Number <= signed+fleet.MaxJump {
			newest = m
		}
	}
	return newest, err
}

func numberOf(v *fleet.Version) uint64 {
	if v == nil {
		return 0
	}
	return v.Number
}

// sane says why no daemon would take what --after makes, where the highest number is what who
// tells of, or the current version's; nil when they would.
func (p *pusher) sane(highest uint64, who fleet.Member) error {
	switch {
	case p.After >= fleet.MaxNumber:
		return fmt.Errorf("%w: after %d", fleet.ErrNumber, p.After)
	case p.After < highest && who.Number == highest:
		return fmt.Errorf("%w: %d is too low: the %s tells of version %d, and no daemon goes back: --after %d",
			ErrAfter, p.After, strings.TrimSpace(who.Kind+" "+who.Host), highest, highest)
	case p.After < highest:
		return fmt.Errorf("%w: %d is too low: ZooKeeper has version %d, and no daemon goes back", ErrAfter, p.After, highest)
	case p.After > highest+fleet.MaxJump && !p.Force:
		return fmt.Errorf("%w: nobody tells of more than version %d, and a daemon takes numbers up to %d after the one that it runs; --force pushes it all the same",
			ErrAfter, highest, uint64(fleet.MaxJump))
	}
	return nil
}

// predecessor is the ID of the version that --after names, as far as it can be known.
func (p *pusher) predecessor(ctx context.Context, t fleetTree, members []fleet.Member, known func(*fleet.Version) bool) string {
	if v, err := t.Version(ctx, p.After); err == nil && known(v) {
		return v.ID()
	}
	for _, m := range members {
		if id, err := hex.DecodeString(m.ID); m.Err == nil && m.Number == p.After && err == nil && len(id) == 32 {
			return m.ID
		}
	}
	return ""
}

// running is the configuration that the current version is; nil when nobody can tell.
func (p *pusher) running(ctx context.Context, a *app.App, t fleetTree, current *fleet.Version) *configs.Config {
	if current == nil {
		return nil
	}
	text, err := t.Text(ctx, current)
	if err != nil {
		fmt.Fprintln(a.Stderr, "poolkeeper: warning:", err)
		return nil
	}
	cfg, err := a.KeepSecret(configs.Load(current.Name(), configs.Options{SecurePath: a.Flags.Secure, Keyless: true, Text: text}))
	if err != nil {
		return nil
	}
	return cfg
}

// errNotConfirmed: nobody has said yes.
var errNotConfirmed = errors.New("nothing was pushed: answer yes, or give --yes")

// confirm prints what will be deleted or stopped, and asks whether it may be. Where that is
// nothing, nothing is asked.
func (p *pusher) confirm(ctx context.Context, a *app.App, t fleetTree, before, next *configs.Config) error {
	images, nodes, err := t.readTree(ctx)
	if err != nil {
		return fmt.Errorf("look for what would be deleted: %w", err)
	}
	lines := fleet.Losses(before, next, images, nodes)
	if len(lines) == 0 {
		return nil
	}
	fmt.Fprintln(a.Stdout, "No longer configured, and to be deleted or stopped (what is in use stays until it is accepted, or no longer used):")
	for _, line := range lines {
		fmt.Fprintln(a.Stdout, "  "+line)
	}
	if p.Yes {
		return nil
	}
	fmt.Fprint(a.Stdout, "Push it? [yes/no] ")
	answer, err := bufio.NewReader(a.Stdin).ReadString('\n')
	if strings.TrimSpace(answer) != "yes" {
		fmt.Fprintln(a.Stdout)
		return errNotConfirmed
	}
	_ = err // an answer may end without a line break
	return nil
}

// errBehind: some daemon does not run what was pushed.
var errBehind = errors.New("not every daemon runs it")

// waitPoll is how often a push that waits looks at who runs it.
const waitPoll = 100 * time.Millisecond

// follow says who does not run a version, with --wait only when none is left or time is up.
func (p *pusher) follow(ctx context.Context, a *app.App, t fleetTree, v *fleet.Version) error {
	looking := context.WithoutCancel(ctx)
	for {
		members, err := t.Members(looking)
		if err != nil {
			return fmt.Errorf("version %d is pushed, but see who runs it: %w", v.Number, err)
		}
		current, err := t.Current(looking)
		superseded := err == nil && current.Number > v.Number
		lines, refused := behind(members, v, superseded)
		over := ctx.Err() != nil
		if len(lines) > 0 && p.Wait && !refused && !over {
			_ = clock.Sleep(ctx, waitPoll) // the end of ctx is seen above
			continue
		}
		fmt.Fprintf(a.Stdout, "%d of %d daemons run it.\n", len(members)-len(lines), len(members))
		for _, line := range lines {
			fmt.Fprintln(a.Stdout, "  "+line)
		}
		if p.Wait && len(lines) > 0 {
			return fmt.Errorf("version %d: %w", v.Number, errBehind)
		}
		return nil
	}
}

// inClear are the keys of a text whose values are secrets, by their names, and not sealed.
func inClear(name string, text []byte) (keys []string) {
	const filled = "%(NODEPOOL_" // what each host fills in is not in the text
	cfg, err := configs.Load(name, configs.Options{Keyless: true, Text: text, Env: func(string) (string, bool) { return "", false }})
	if err != nil { // a variable may stand where a number has to
		cfg, err = configs.Load(name, configs.Options{Keyless: true, Text: text})
	}
	if err != nil {
		return nil // what is wrong has been told
	}
	if auth := cfg.ZooKeeper.Auth; auth != nil && !sealed.Is(auth.Password) && !strings.Contains(auth.Password, filled) {
		keys = append(keys, "zookeeper-auth.password")
	}
	for i := range cfg.DiskImages {
		image := &cfg.DiskImages[i]
		for _, variable := range image.SecretEnvVars {
			if value := image.EnvVars[variable]; value != "" && !sealed.Is(value) && !strings.Contains(value, filled) {
				keys = append(keys, configs.Item("diskimages", image.Name)+".env-vars."+variable)
			}
		}
	}
	return keys
}
