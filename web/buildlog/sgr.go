package buildlog

import (
	"bytes"
	"strconv"
	"strings"

	"poolkeeper/zkmodel/listing"
)

// Span is a piece of a line that looks alike.
type Span struct {
	Class string // classes of the style sheet; "" for plain text
	Text  string
}

// look is how text is shown: what the escape sequences of a terminal (ECMA-48, "select
// graphic rendition") say. Colours are 0 for the usual, else 1 to 16.
type look struct {
	front, back                            int
	bold, faint, italic, underline, invert bool
}

// class are the names in the style sheet.
func (l look) class() string {
	var names []string
	front, back := l.front, l.back
	if l.invert {
		names = append(names, "ai")
	}
	if front > 0 {
		names = append(names, "f"+strconv.Itoa(front-1))
	}
	if back > 0 {
		names = append(names, "b"+strconv.Itoa(back-1))
	}
	for _, is := range []struct {
		name string
		on   bool
	}{{"ab", l.bold}, {"af", l.faint}, {"at", l.italic}, {"au", l.underline}} {
		if is.on {
			names = append(names, is.name)
		}
	}
	return strings.Join(names, " ")
}

// painter turns lines with escape sequences into spans. Colours go on from line to line, as
// on a terminal.
type painter struct{ look look }

// paint is a line as it is shown. Colours are kept; what else terminals take for a command
// is left out, and what remains cannot move anything.
func (p *painter) paint(line []byte) []Span {
	line = overwritten(line)
	var spans []Span
	plain := 0 // where the text begins that is not in a span yet
	flush := func(end int) {
		if text := shown(line[plain:end]); text != "" {
			spans = append(spans, Span{p.look.class(), text})
		}
	}
	for i := 0; i < len(line); {
		if line[i] != 0x1b {
			i++
			continue
		}
		length, params := sequence(line[i:])
		flush(i)
		if params != nil {
			p.look.set(*params)
		}
		i += length
		plain = i
	}
	flush(len(line))
	return spans
}

// overwritten is what is left of a line whose writer went back to its begin, as progress
// bars do.
func overwritten(line []byte) []byte {
	line = bytes.TrimRight(line, "\r")
	return line[bytes.LastIndexByte(line, '\r')+1:]
}

// shown is text that moves nothing.
func shown(text []byte) string {
	return listing.Visible(strings.ReplaceAll(strings.ToValidUTF8(string(text), "\uFFFD"), "\t", "    "))
}

// sequence is the length of the escape sequence that a text begins with; params are
// those of one that selects how text is shown. One without an end is its first byte.
func sequence(text []byte) (length int, params *string) {
	if len(text) < 2 {
		return 1, nil
	}
	switch c := text[1]; {
	case c == '[':
		return control(text)
	case bytes.IndexByte([]byte("]PX^_"), c) >= 0: // a text for the terminal: its title, a link …
		for i := 2; i < len(text); i++ {
			if text[i] == 0x07 {
				return i + 1, nil
			}
			if text[i] == 0x1b && i+1 < len(text) && text[i+1] == '\\' {
				return i + 2, nil
			}
		}
		return 1, nil
	}
	i := 1
	for i < len(text) && text[i] >= 0x20 && text[i] <= 0x2f {
		i++
	}
	if i < len(text) && text[i] >= 0x30 && text[i] <= 0x7e {
		return i + 1, nil
	}
	return 1, nil
}

// control is sequence for one that begins with "ESC [".
func control(text []byte) (length int, params *string) {
	i := 2
	for i < len(text) && text[i] >= 0x30 && text[i] <= 0x3f {
		i++
	}
	given := string(text[2:i])
	between := i
	for i < len(text) && text[i] >= 0x20 && text[i] <= 0x2f {
		i++
	}
	if i == len(text) || text[i] < 0x40 || text[i] > 0x7e {
		return 1, nil
	}
	if text[i] == 'm' && i == between && strings.Trim(given, "0123456789;:") == "" {
		return i + 1, &given
	}
	return i + 1, nil
}

// set does what the parameters of a sequence say; what it does not know changes nothing.
func (l *look) set(params string) {
	var codes []int
	for field := range strings.FieldsFuncSeq(params, func(r rune) bool { return r == ';' || r == ':' }) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return
		}
		codes = append(codes, n)
	}
	if len(codes) == 0 {
		codes = []int{0}
	}
	for i := 0; i < len(codes); i++ {
		switch c := codes[i]; {
		case c == 38 || c == 48:
			colour, used := extended(codes[i+1:])
			if c == 38 {
				l.front = colour
			} else {
				l.back = colour
			}
			i += used
		case c >= 30 && c <= 37:
			l.front = c - 30 + 1
		case c >= 40 && c <= 47:
			l.back = c - 40 + 1
		case c >= 90 && c <= 97:
			l.front = c - 90 + 9
		case c >= 100 && c <= 107:
			l.back = c - 100 + 9
		default:
			l.attribute(c)
		}
	}
}

// attribute is what a code means that is no colour's.
func (l *look) attribute(code int) {
	switch code {
	case 0:
		*l = look{}
	case 1:
		l.bold = true
	case 2:
		l.faint = true
	case 3:
		l.italic = true
	case 4:
		l.underline = true
	case 7:
		l.invert = true
	case 22:
		l.bold, l.faint = false, false
	case 23:
		l.italic = false
	case 24:
		l.underline = false
	case 27:
		l.invert = false
	case 39:
		l.front = 0
	case 49:
		l.back = 0
	}
}

// extended is the colour, of our 16, that is nearest to one of 256 ("5;N") or of red, green
// and blue ("2;R;G;B"), and how many codes it took.
func extended(codes []int) (colour, used int) {
	switch {
	case len(codes) >= 2 && codes[0] == 5:
		return of256(codes[1]), 2
	case len(codes) >= 4 && codes[0] == 2:
		return nearest(codes[1], codes[2], codes[3]), 4
	}
	return 0, len(codes)
}

func of256(n int) int {
	switch {
	case n < 0 || n > 255:
		return 0
	case n < 16:
		return n + 1
	case n >= 232:
		grey := 8 + 10*(n-232)
		return nearest(grey, grey, grey)
	}
	level := func(n int) int { return []int{0, 95, 135, 175, 215, 255}[n%6] }
	n -= 16
	return nearest(level(n/36), level(n/6), level(n))
}

// nearest has a bit for each of red, green and blue that is strong, and is bright where one is.
func nearest(red, green, blue int) int {
	most := max(red, green, blue)
	if most < 64 {
		return 1
	}
	colour := 0
	for bit, part := range []int{red, green, blue} {
		if 3*part >= 2*most {
			colour |= 1 << bit
		}
	}
	if colour == 7 && most < 160 {
		return 9 // grey
	}
	if most > 200 {
		colour += 8
	}
	return colour + 1
}
