package dib

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
)

// shortestSecret is the length from which a value is masked: shorter ones
// would hide half of the log and are no secrets.
const shortestSecret = 6

// longestLine is the longest line that is always looked at as a whole.
const longestLine = 64 << 10

// longestHeld is how much of a line waits at most, should secrets overlap.
const longestHeld = 4 * longestLine

// copyMasked copies a build's output line by line with the secrets replaced. Of
// a line that is too long for that, no secret is cut in two.
func copyMasked(to io.Writer, from io.Reader, secrets []string) error {
	parts := secretLines(secrets)
	mask := replacer(parts)
	lines := bufio.NewReaderSize(from, longestLine)
	var line []byte // begun, and not yet written
	for {
		more, err := lines.ReadSlice('\n')
		line = append(line, more...)
		end := len(line)
		if errors.Is(err, bufio.ErrBufferFull) && len(line) < longestHeld {
			end = safeCut(line, parts)
		}
		if end > 0 {
			if werr := writeMasked(to, line[:end], mask); werr != nil {
				return werr
			}
			line = append(line[:0], line[end:]...)
		}
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
	}
}

// safeCut is where a line that goes on can be cut: no secret lies across it,
// nor may the beginning of one lie before it.
func safeCut(line []byte, parts []string) int {
	if len(parts) == 0 {
		return len(line)
	}
	cut := max(0, len(line)-len(parts[0])+1) // the longest is the first
	for moved := true; moved; {
		moved = false
		for _, part := range parts {
			from := max(0, cut-len(part)+1)
			to := min(len(line), cut+len(part)-1)
			if i := bytes.Index(line[from:to], []byte(part)); i >= 0 {
				cut, moved = from+i, true
			}
		}
	}
	return cut
}

func writeMasked(to io.Writer, line []byte, mask *strings.Replacer) error {
	if mask == nil {
		_, err := to.Write(line)
		return err
	}
	_, err := mask.WriteString(to, string(line))
	return err
}

// secretLines are the lines of all secrets that are long enough to be masked,
// the longest first: one may contain another.
func secretLines(secrets []string) []string {
	var parts []string
	for _, secret := range secrets {
		for line := range strings.Lines(secret) {
			if line = strings.TrimSpace(line); len(line) >= shortestSecret {
				parts = append(parts, line)
			}
		}
	}
	slices.SortFunc(parts, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(parts)
}

// replacer masks what it is given; nil when that is nothing.
func replacer(parts []string) *strings.Replacer {
	if len(parts) == 0 {
		return nil
	}
	pairs := make([]string, 0, 2*len(parts))
	for _, part := range parts {
		pairs = append(pairs, part, "********")
	}
	return strings.NewReplacer(pairs...)
}
