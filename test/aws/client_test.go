package aws_test

import (
	"bufio"
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

// officialPython runs Amazon's own programs, of Debian.
const officialPython = "/usr/bin/python3"

// clientsNeeded needs what `make test-aws` installs.
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

// lines is a program that answers each line with one.
type lines struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func startLines(t *testing.T, e *endpoint.Endpoint, args ...string) lines {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), officialPython, args...)
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
	return lines{t, in, bufio.NewReaderSize(out, 1<<20)}
}

// ask says a line, and reads the answer.
func (l lines) ask(question, answer any) {
	l.t.Helper()
	line, err := json.Marshal(question)
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(l.in, "%s\n", line); err != nil {
		l.t.Fatal(err)
	}
	text, err := l.out.ReadBytes('\n')
	if err != nil {
		l.t.Fatalf("%s: %v", line, err)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		l.t.Fatalf("%s: %v: %s", line, err, text)
	}
}

// command is the official command.
type command struct {
	lines

	url string
}

func newCommand(t *testing.T, e *endpoint.Endpoint) command {
	t.Helper()
	return command{startLines(t, e, "command.py"), e.URL}
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
	args := []string{"--endpoint-url", c.url, "--output", "json", "--no-cli-pager", name, hyphens(operation), "--cli-input-json", string(data)}
	if body != nil {
		file := filepath.Join(c.t.TempDir(), "body")
		if err := os.WriteFile(file, body, 0o600); err != nil {
			c.t.Fatal(err)
		}
		args = append(args, map[string]string{"s3": "--body", "ebs": "--block-data"}[service], file)
	}
	var said struct {
		Out, Errors string
		Code        int
	}
	c.ask(args, &said)
	if said.Code != 0 {
		if _, rest, found := strings.Cut(said.Errors, "An error occurred ("); found {
			code, _, _ := strings.Cut(rest, ")")
			return nil, code
		}
		c.t.Fatalf("aws %v: %d: %s", args, said.Code, said.Errors)
	}
	answer := map[string]any{}
	if said.Out != "" {
		if err := json.Unmarshal([]byte(said.Out), &answer); err != nil {
			c.t.Fatalf("aws %v: %v: %s", args, err, said.Out)
		}
	}
	delete(answer, "ResponseMetadata") // of a fleet
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
type python struct{ lines }

func newPython(t *testing.T, e *endpoint.Endpoint) python {
	t.Helper()
	return python{startLines(t, e, "boto.py", e.URL)}
}

func (p python) call(service, operation string, params map[string]any, body []byte) (map[string]any, string) {
	p.t.Helper()
	var said struct {
		Answer map[string]any
		Code   string
	}
	p.ask(map[string]any{
		"service": service, "operation": strings.ReplaceAll(hyphens(operation), "-", "_"), "params": params, "body": body,
	}, &said)
	return said.Answer, said.Code
}
