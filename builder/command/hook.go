package command

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"poolkeeper/builder/dib"
	"poolkeeper/configs"
	"poolkeeper/configs/redact"
)

// hookGrace is how long a hook that was asked to end may clean up.
const hookGrace = 2 * time.Second

// Hook runs a provider's post-upload-hook with Nodepool's arguments for an image
// that was sent: its external id, and the path of its file. It has a guard as a
// build has: it ends with all that it has started when its time is over, when
// this builder stops, and when it dies or loses its session.
func (r *Runner) Hook(ctx context.Context, cfg *configs.Config, hook, provider, id, path string) error {
	command, err := exec.LookPath(hook)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrHook, err)
	}
	result, err := r.Host.Do(ctx, dib.Run{
		Guard: r.Guard,
		Argv:  []string{command, provider, id, path},
		Env:   hookEnv(r.Environ, cfg.HookEnvAllow, r.Secrets),
		Grace: hookGrace,
		Lease: leaseOf(r.Session),
		Haste: lostLock,
	})
	if result.Left != "" {
		r.Log.Error("A post-upload-hook left something behind", "provider", provider, "hook", hook, "left", result.Left)
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrHook, hook, err)
	}
	if result.ExitCode != 0 {
		return fmt.Errorf("%w: %w: %s", ErrHook, &exitError{command: hook, code: result.ExitCode},
			r.Secrets.Text(lastLine(result.Output)))
	}
	return nil
}

// hookEnv is the daemon's environment without its secrets, unless the operator
// allows them: what tells of a secret by its name, and what holds one that we know.
func hookEnv(daemon, allow []string, secrets *redact.Secrets) []string {
	var env []string
	for _, pair := range daemon {
		name, value, _ := strings.Cut(pair, "=")
		allowed := slices.ContainsFunc(allow, func(pattern string) bool {
			begin, many := strings.CutSuffix(pattern, "*")
			return name == pattern || many && strings.HasPrefix(name, begin)
		})
		if allowed || !configs.LooksSecret(name) && !secrets.Has(value) {
			env = append(env, pair)
		}
	}
	return env
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
