package zkmodel

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// ownRecords read the records that only Poolkeeper has, and write what was read; nil is what
// cannot be read.
func ownRecords() map[string]func(data []byte) ([]byte, error) {
	var stat recipe.Stat
	write := func(record any, broken error) ([]byte, error) {
		if broken == nil {
			return json.Marshal(record)
		}
		return nil, nil
	}
	return map[string]func([]byte) ([]byte, error){
		"verdicts": func(d []byte) ([]byte, error) { v, err := DecodeVerdicts("i", d, stat); return write(v, err) },
		"canary":   func(d []byte) ([]byte, error) { c := DecodeCanary("p", "i", d, stat); return write(c, c.Broken) },
		"counts":   func(d []byte) ([]byte, error) { return write(DecodeCanaryCounts(d, stat), nil) },
		"pauses":   func(d []byte) ([]byte, error) { p := DecodePauses(d, stat, true); return write(p.All, p.Broken) },
		"pause":    func(d []byte) ([]byte, error) { p := decodePause("p", d, stat); return write(p, p.Broken) },
		"trial": func(d []byte) ([]byte, error) {
			at := &Validation{}
			_ = json.Unmarshal(d, at) // what cannot be read is refused below
			v := decodeValidation(at.Path(), d, stat)
			return write(v, v.Broken)
		},
		"owner": func(d []byte) ([]byte, error) {
			return []byte(DecodeBuilderOwner(string(d), time.Second).Encode()), nil
		},
		"offer": func(d []byte) ([]byte, error) {
			o, ok := DecodeOffer(d, stat)
			if !ok {
				return nil, nil
			}
			return write(o, nil)
		},
	}
}

// FuzzOwnRecords: what is read of a record that only Poolkeeper writes is written so that it is
// read as the same: else a daemon that changes one field changes others.
func FuzzOwnRecords(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", "[]", "{", "\xff",
		`{"verdicts":[{"verdict":"rejected","provider":"p","build":"1","build_czxid":7}],"pins":[{"provider":"p","build":"1"}]}`,
		`{"promoted":{"build":"1","czxid":3},"canary":{"build":"2","upload":"/x","since":1.5,"nodes":2,"asked":1e308}}`,
		`{"of":{"build":"1"},"since":12.25,"canary":{"nodes":1},"previous":{"failed":-1}}`, `{"image/a":{"by":"me","until":1,"flag":2},"b":null}`,
		`{"hostname":"h","provider":"p","pool":"main","labels":["a",null],"left":true}`, `{"host":"h","images_dir":"/d","timeout":5}`, `{"since":1e19}`,
		`{"by":"me","reason":"r","until":1764000000.123456,"drain":true}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for kind, rewrite := range ownRecords() {
			once, err := rewrite(data)
			if err != nil {
				t.Fatalf("%s: write what was read of %q: %v", kind, data, err)
			}
			if once == nil {
				continue
			}
			twice, err := rewrite(once)
			if err != nil || !bytes.Equal(once, twice) {
				t.Fatalf("%s of %q is not stable (%v):\n%s\n%s", kind, data, err, once, twice)
			}
		}
	})
}

// FuzzPaths: a path that is taken apart is put together the same.
func FuzzPaths(f *testing.F) {
	for _, p := range []string{
		"", "/", UploadPath("i", "1", "p", "2"), "i/builds/1/providers/p/images/2", ImagesRoot + "//builds/1/providers/p/images/2",
		UploadPath("..", ".", "p", "2"), UploadPath("i", "1", "p", "2") + "/", "debian-0000000001", "a-b-c", "-", "a-", "a-1/x",
	} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if key, err := ParseUploadPath(text); err == nil && key.Path() != text {
			t.Errorf("%q is %+v, which is %q", text, key, key.Path())
		}
		if image, build, err := ParseBuildName(text); err == nil && (!strings.HasPrefix(text, image+"-") || build != WholeID(text[len(image)+1:]) || image == "" || build == "" || strings.Contains(text, "/")) {
			t.Errorf("%q is %q and %q", text, image, build)
		}
	})
}
