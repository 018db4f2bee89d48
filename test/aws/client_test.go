package aws_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"poolkeeper/test/aws/endpoint"
)

// client is a program that speaks to Amazon. It gives the answer, or the code of the error.
type client interface {
	call(service, operation string, params map[string]any, body []byte) (answer map[string]any, code string)
}

// official are Amazon's own programs, of Debian.
const officialCommand, officialPython = "/usr/bin/aws", "/usr/bin/python3"

// clientsNeeded needs what `make test-aws` installs. A call of the command takes a second of processor
// time, so that make test does without.
func clientsNeeded(t *testing.T) {
	t.Helper()
	if os.Getenv(endpoint.RequiredVariable) == "" {
		t.Skip("make test-aws runs this test, which needs Amazon's own clients")
	}
}

// environ is all that a client may know.
func environ(t *testing.T, e *endpoint.Endpoint) []string {
	t.Helper()
	env := []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir(), "AWS_MAX_ATTEMPTS=1"}
	for name, value := range e.Environment() {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// command is the official command.
type command struct {
	t   *testing.T
	e   *endpoint.Endpoint
	env []string
}

func (c command) call(service, operation string, params map[string]any, body []byte) (map[string]any, string) {
	c.t.Helper()
	data, err := json.Marshal(params)
	if err != nil {
		c.t.Fatal(err)
	}
	name := map[string]string{"s3": "s3api"}[service]
	if name == "" {
		name = service
	}
	args := []string{"--endpoint-url", c.e.URL, "--output", "json", "--no-cli-pager", name, hyphens(operation), "--cli-input-json", string(data)}
	if body != nil {
		file := filepath.Join(c.t.TempDir(), "body")
		if err := os.WriteFile(file, body, 0o600); err != nil {
			c.t.Fatal(err)
		}
		args = append(args, map[string]string{"s3": "--body", "ebs": "--block-data"}[service], file)
	}
	cmd := exec.CommandContext(c.t.Context(), officialCommand, args...)
	cmd.Env = c.env
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Run(); err != nil {
		if _, rest, found := strings.Cut(errors.String(), "An error occurred ("); found {
			code, _, _ := strings.Cut(rest, ")")
			return nil, code
		}
		c.t.Fatalf("aws %v: %v: %s", args, err, errors.String())
	}
	answer := map[string]any{}
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
			c.t.Fatalf("aws %v: %v: %s", args, err, out.String())
		}
	}
	return answer, ""
}

// hyphens is an operation as the command calls it: GetEBSDefault is get-ebs-default.
func hyphens(operation string) string {
	var text strings.Builder
	runes := []rune(operation)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]) && unicode.IsUpper(runes[i-1])) {
			text.WriteByte('-')
		}
		text.WriteRune(unicode.ToLower(r))
	}
	return text.String()
}

// python is boto3, which reads a call a line.
type python struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func newPython(t *testing.T, e *endpoint.Endpoint) python {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), officialPython, "boto.py", e.URL)
	cmd.Env = environ(t, e)
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // how it ends says nothing that its answers do not say
	})
	return python{t, in, bufio.NewReaderSize(out, 1<<20)}
}

func (p python) call(service, operation string, params map[string]any, body []byte) (map[string]any, string) {
	p.t.Helper()
	line, err := json.Marshal(map[string]any{
		"service": service, "operation": strings.ReplaceAll(hyphens(operation), "-", "_"), "params": params, "body": body,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(p.in, "%s\n", line); err != nil {
		p.t.Fatal(err)
	}
	text, err := p.out.ReadBytes('\n')
	if err != nil {
		p.t.Fatalf("boto3 %s %s: %v", operation, params, err)
	}
	var answer struct {
		Answer map[string]any
		Code   string
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		p.t.Fatalf("boto3 %s: %v: %s", operation, err, text)
	}
	return answer.Answer, answer.Code
}
