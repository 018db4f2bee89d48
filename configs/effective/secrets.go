package effective

import (
	"regexp"
	"slices"
	"strings"

	"poolkeeper/configs"
	"poolkeeper/configs/redact"
)

// shown are the keys of the secure file whose values are no secrets. All others are.
var shown = [][]string{
	{"zookeeper-servers"},
	{"zookeeper-tls"},
	{"secret-key"},
	{"config-signers"},
	{"zookeeper-auth", "user"},
	{"zookeeper-auth", "owner-only"},
	{"diskimages", "name"},
	{"events", "sinks", "name"},
	{"hooks", "name"},
}

// mayHold are keys whose texts often have a secret somewhere within: all of it is masked.
var mayHold = []string{"userdata"}

// inAddress is who logs in where an address says it.
var inAddress = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/@\s]+@`)

// inQuery is what an address asks with.
var inQuery = regexp.MustCompile(`([?&]([^=&\s?]+)=)[^&\s]+`)

// word is one of a command line, quoted or not; what begins with - is an option.
const word = `("[^"]*"|'[^']*'|[^\s"'&-][^\s"'&]*)`

var (
	// inOption is what a command line gives to an option.
	inOption = regexp.MustCompile(`(--?([A-Za-z][\w-]*)(?:=|\s+))` + word)
	// inVariable is what it sets a variable to.
	inVariable = regexp.MustCompile(`(\b([A-Za-z]\w*)=)` + word)
)

// inHeader is how a request says who it is from.
var inHeader = regexp.MustCompile(`(?i)\b((?:bearer|basic)\s+)[\w.~+/=-]{8,}`)

// within masks what a text says of who logs in: in an address, and what that asks with, in a command line and in a
// header, under a name that tells of a secret. A private key is masked whole.
func within(text string) string {
	if strings.Contains(text, "PRIVATE KEY-----") {
		return redact.Mask
	}
	text = inHeader.ReplaceAllString(inAddress.ReplaceAllString(text, "${1}"+redact.Mask+"@"), "${1}"+redact.Mask)
	return named(inVariable, named(inOption, named(inQuery, text)))
}

// named masks what stands behind names that tell of a secret: the first group of at is all before it, the second the name.
func named(at *regexp.Regexp, text string) string {
	return at.ReplaceAllStringFunc(text, func(found string) string {
		m := at.FindStringSubmatch(found)
		if configs.LooksSecret(m[2]) {
			return m[1] + redact.Mask
		}
		return found
	})
}

// hide masks a value that is a secret, or the part of it that is.
func (t *Tree) hide(v *Value, w *configs.Written, at way) {
	key := ""
	if len(at.keys) > 0 {
		key = at.keys[len(at.keys)-1]
	}
	public := slices.ContainsFunc(shown, func(keys []string) bool {
		return len(at.keys) >= len(keys) && slices.Equal(at.keys[:len(keys)], keys)
	})
	switch {
	case w.Sealed,
		t.inSecure(w) && !public,
		slices.ContainsFunc(w.Variables, configs.LooksSecret),
		configs.LooksSecret(key) && !public,
		slices.Contains(mayHold, key),
		at.kind == "source" && key == "command":
		v.Scalar, v.Secret = redact.Mask, true
		return
	}
	text, ok := v.Scalar.(string)
	if !ok {
		if t.mask.Has(w.Text) {
			v.Scalar, v.Secret = redact.Mask, true
		}
		return
	}
	masked := within(t.mask.Text(text))
	if at.kind == "event sink" && key == "webhook" {
		masked = hostOnly(masked)
	}
	if masked != text {
		v.Scalar, v.Secret = masked, true
	}
}

// hostOnly masks the path and the query of an address, which is what lets chats take what comes.
func hostOnly(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return redact.Mask
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		return address
	}
	return scheme + "://" + rest[:end+1] + redact.Mask
}
