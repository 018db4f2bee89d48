package sealed

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"filippo.io/age"
)

// FuzzOpen: no text but one that was sealed for this place opens, and no error has a word of what
// was sealed.
func FuzzOpen(f *testing.F) {
	const value, place = "swordfish", "diskimages[a].env-vars.B"
	keys, err := New("/key")
	if err != nil {
		f.Fatal(err)
	}
	whole, err := Seal(keys.Recipients()[0], place, value)
	if err != nil {
		f.Fatal(err)
	}
	// The text is the one that was sealed, with some of it replaced: what is made up opens nothing.
	f.Add("", 0, 0, place)
	f.Add("", 0, 0, "elsewhere")
	f.Add("A", len(whole)-1, 1, place)
	f.Add(" \n ", 100, 0, place)
	f.Add("v2", 7, 2, place)
	f.Add("age1", 10, 4, place)
	f.Fuzz(func(t *testing.T, put string, at, cut int, where string) {
		at = int(uint(at) % uint(len(whole)+1))
		text := whole[:at] + put + whole[min(len(whole), at+int(uint(cut)%64)):]
		got, err := keys.Open(text, where)
		switch {
		case err == nil && (got != value || where != place):
			t.Errorf("%q opens at %q to %q", text, where, got)
		case err != nil && got != "":
			t.Errorf("%v, and the value", err)
		case err != nil && (strings.Contains(err.Error(), value) || !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNoKey) && !errors.Is(err, ErrElsewhere)):
			t.Errorf("the error %q", err)
		}
		if err == nil && Recipient(text) != keys.Recipients()[0] {
			t.Errorf("%q is sealed to %q", text, Recipient(text))
		}
	})
}

// FuzzKeyFile: a key file is taken whole or refused by file and line, never with words of it.
func FuzzKeyFile(f *testing.F) {
	one, err := age.GenerateX25519Identity()
	if err != nil {
		f.Fatal(err)
	}
	f.Add("", "")
	f.Add("# remark\n", "\n")
	f.Add("\r\n", "\r\nnot a key")
	f.Add("\xef\xbb\xbf", "AGE-SECRET-KEY-1")
	said := regexp.MustCompile(`^unusable key file: /key( holds no key|:\d+: the line is no key as .poolkeeper secret keygen. makes it)$`)
	f.Fuzz(func(t *testing.T, before, after string) {
		for _, text := range []string{before + one.String() + after, before + after} {
			k, err := parse("/key", []byte(text))
			switch {
			case err != nil && (!errors.Is(err, ErrKeyFile) || !said.MatchString(err.Error())):
				t.Errorf("the error %q", err)
			case err == nil && string(k.Bytes()) != text:
				t.Errorf("%q is written as %q", text, k.Bytes())
			case err == nil && (len(k.Recipients()) == 0 || strings.Contains(k.String(), "SECRET")):
				t.Errorf("%q: %v, %q", text, k.Recipients(), k)
			}
		}
	})
}
