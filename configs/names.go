package configs

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest name, in bytes: with a build id and the endings of a
// checksum file it must still be a file name.
const maxName = 200

// CheckName refuses a name that would be dangerous or confusing as part of a
// path, of a ZooKeeper node or of a command line. Kind says what it names, for
// the message: image, provider, pool, label, architecture. Errors are ErrName.
func CheckName(kind, name string) error {
	why := nameFault(name)
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: %s %q %s", ErrName, kind, name, why)
}

func nameFault(name string) string {
	switch {
	case name == "":
		return "is empty"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case len(name) > maxName:
		return fmt.Sprintf("is longer than %d bytes", maxName)
	case strings.Contains(name, "/"):
		return "contains '/'"
	case strings.Contains(name, ".."):
		return `contains ".."`
	case name[0] == '-' || name[0] == '.':
		return fmt.Sprintf("begins with %q", name[0])
	case name == "lock":
		return "is a reserved word of the tree in ZooKeeper"
	case strings.TrimSpace(name) != name:
		return "begins or ends with a blank"
	case strings.ContainsFunc(name, notPrintable):
		return "contains a character that cannot be printed"
	}
	return ""
}

// notPrintable also catches what ZooKeeper refuses in a path.
func notPrintable(r rune) bool { return !unicode.IsPrint(r) || r >= 0xfff0 && r <= 0xffff }

// decodeName decodes nothing but the name of a mapping.
func (v value) decodeName(kind string, out *string) {
	entries, _ := v.entries()
	for _, e := range entries {
		if e.key == "name" && !e.isNull() {
			checkedName(kind, out)(e.value)
			return
		}
	}
	v.require(nil, "name")
}

// checkedName decodes a name and checks it.
func checkedName(kind string, out *string) decodeFunc {
	return func(v value) {
		s, ok := v.text()
		if !ok {
			return
		}
		if why := nameFault(s); why != "" {
			v.fail("%s name %q %s", kind, s, why)
			return
		}
		*out = s
	}
}
