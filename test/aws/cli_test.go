package aws_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"poolkeeper/test/aws/endpoint"
)

// official is Amazon's own command, of Debian.
const official = "/usr/bin/aws"

// cli is the official command at an endpoint.
type cli struct {
	t *testing.T
	e *endpoint.Endpoint
}

// clients needs what `make test-aws` installs.
func clients(t *testing.T, e *endpoint.Endpoint) cli {
	t.Helper()
	if _, err := os.Stat(official); err != nil {
		t.Skip("Debian's awscli is not installed: make test-aws runs this test")
	}
	return cli{t, e}
}

func (c cli) try(args ...string) (string, error) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), official, append([]string{"--endpoint-url", c.e.URL, "--output", "json", "--no-cli-pager"}, args...)...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + c.t.TempDir(), "AWS_MAX_ATTEMPTS=1"}
	for name, value := range c.e.Environment() {
		if value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	err := cmd.Run()
	return out.String() + errors.String(), err
}

// run runs a command that has to work, and reads its answer.
func (c cli) run(args ...string) map[string]any {
	c.t.Helper()
	out, err := c.try(args...)
	if err != nil {
		c.t.Fatalf("aws %v: %v: %s", args, err, out)
	}
	answer := map[string]any{}
	if out != "" {
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			c.t.Fatalf("aws %v: %v: %s", args, err, out)
		}
	}
	return answer
}
