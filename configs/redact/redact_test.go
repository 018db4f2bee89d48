package redact

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"sync"
	"testing"
)

func TestText(t *testing.T) {
	var s Secrets
	s.Add("hunter2!", "short", "hunter2!-and-more", "two\nlines-of-a-key\n", `with "quotes" & <signs>`)
	quoted, err := json.Marshal(`with "quotes" & <signs>`)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"password hunter2!":         "password " + Mask,
		"x hunter2!-and-more y":     "x " + Mask + " y",
		"short stays":               "short stays",
		"lines-of-a-key":            Mask,
		"two":                       "two",
		string(quoted):              `"` + Mask + `"`,
		`a=with "quotes" & <signs>`: "a=" + Mask,
		url.QueryEscape(`with "quotes" & <signs>`):   Mask,
		fmt.Sprintf("%q", `with "quotes" & <signs>`): `"` + Mask + `"`,
		// An answer in JSON as an error quotes it, and as the line of a log does.
		fmt.Sprintf("%q", quoted):                     `"\"` + Mask + `\""`,
		strings.ReplaceAll(string(quoted), `"`, `\"`): `\"` + Mask + `\"`,
		"nothing": "nothing",
	} {
		if got := s.Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var none *Secrets
	none.Add("anything")
	if got := none.Text("anything"); got != "anything" {
		t.Errorf("nobody's secret: %q", got)
	}
}

// A cloud that echoes the headers of a request shows a password in base64, whatever stands before and after it.
func TestBase64(t *testing.T) {
	var s Secrets
	const secret = "correct?horse>battery"
	s.Add(secret)
	for _, user := range []string{"", "a", "ab", "abc", "admin"} {
		for _, rest := range []string{"", "1", "12", "123"} {
			for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
				encoded := encoding.EncodeToString([]byte(user + ":" + secret + rest))
				shown := s.Text("Authorization: Basic " + encoded)
				// At most two characters before and three behind the mask can hold bits of the secret.
				if !strings.Contains(shown, Mask) || len(shown) > len("Authorization: Basic "+Mask)+encoding.EncodedLen(len(user)+1)+encoding.EncodedLen(len(rest))+5 {
					t.Errorf("%s before and %q after it: %s", user, rest, shown)
				}
			}
		}
	}
}

// Who gets a new token has the old one forgotten.
func TestSet(t *testing.T) {
	var s Secrets
	s.Add("password")
	s.Set("north", "token-1", "token-2")
	s.Set("south", "token-3")
	s.Set("north", "token-2")
	if got, want := s.Text("password token-1 token-2 token-3"), Mask+" token-1 "+Mask+" "+Mask; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// An error loses its secret, and nothing else.
func TestError(t *testing.T) {
	var s Secrets
	s.Add("hunter2!")
	err := s.Error(fmt.Errorf("log in with hunter2!: %w", fs.ErrPermission))
	if err.Error() != "log in with "+Mask+": permission denied" || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
	if fmt.Sprintf("%+v %#v", fmt.Errorf("again: %w", err), fmt.Errorf("%w", err).Error()) == "" ||
		strings.Contains(fmt.Errorf("again: %w", err).Error(), "hunter2!") {
		t.Error("a wrapping error has it again")
	}
	if s.Error(nil) != nil || s.Error(fs.ErrExist) != fs.ErrExist { //nolint:errorlint // the very same
		t.Error("errors without secrets change")
	}
}

// Values may be added while others write.
func TestWriterWhileOthersAdd(t *testing.T) {
	var s Secrets
	var out strings.Builder
	w := s.Writer(&out)
	var group sync.WaitGroup
	group.Go(func() {
		for n := range 200 {
			s.Add(fmt.Sprintf("secret-%d", n))
		}
	})
	for range 200 {
		if _, err := w.Write([]byte("a line\n")); err != nil {
			t.Fatal(err)
		}
	}
	group.Wait()
	out.Reset()
	if n, err := w.Write([]byte("secret-199\n")); n != 11 || err != nil || out.String() != Mask+"\n" {
		t.Errorf("%d %v %q", n, err, out.String())
	}
}
