package fleet

import (
	"bytes"
	"crypto/ed25519"
	"testing"
)

// FuzzVersion: a record of a version is what one of ours wrote, to the last byte but blanks, or is
// refused; nothing that was made up is signed.
func FuzzVersion(f *testing.F) {
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		f.Fatal(err)
	}
	whole, err := (&Version{Number: 7, Digest: "d", Size: 1, Time: 2, By: "me"}).encode()
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"", "null", "{}", string(whole), string(whole) + "x", string(whole) + "}", string(whole) + "]", string(whole) + " ", `{"number":-1}`, `{"number":7,"more":1}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := decode(data)
		if err != nil {
			return
		}
		if v.Number <= 0 || v.Number > MaxNumber {
			t.Errorf("%q is version %d", data, v.Number)
		}
		if end := bytes.TrimSpace(data); end[len(end)-1] != '}' || bytes.HasSuffix(end, []byte("}}")) {
			t.Errorf("%q was taken", data)
		}
		if v.Verify([]ed25519.PublicKey{public}) == nil {
			t.Errorf("%q is signed", data)
		}
		once, err := v.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := decode(once)
		if err != nil || again.ID() != v.ID() {
			t.Fatalf("%q is not read as what was written (%v)", once, err)
		}
		_, _, _ = v.ShownSigner(), v.Name(), v.When()
	})
}
