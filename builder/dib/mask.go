package dib

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
)

// shortestSecret is the length from which a value is masked: shorter ones
// would hide half of the log and are no secrets.
const shortestSecret = 6

// longestLine is the longest stretch of output that is looked at as a whole.
const longestLine = 64 << 10

// copyMasked copies a build's output line by line with the secrets replaced.
func copyMasked(to io.Writer, from io.Reader, secrets []string) error {
	mask := replacer(secrets)
	lines := bufio.NewReaderSize(from, longestLine)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			if werr := writeMasked(to, line, mask); werr != nil {
				return werr
			}
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

func writeMasked(to io.Writer, line []byte, mask *strings.Replacer) error {
	if mask == nil {
		_, err := to.Write(line)
		return err
	}
	_, err := mask.WriteString(to, string(line))
	return err
}

// replacer masks every line of every secret; nil when there is nothing to mask.
func replacer(secrets []string) *strings.Replacer {
	var parts []string
	for _, secret := range secrets {
		for line := range strings.Lines(secret) {
			if line = strings.TrimSpace(line); len(line) >= shortestSecret {
				parts = append(parts, line)
			}
		}
	}
	if len(parts) == 0 {
		return nil
	}
	// The longest first: a secret may contain another.
	slices.SortFunc(parts, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(parts))
	for _, part := range slices.Compact(parts) {
		pairs = append(pairs, part, "********")
	}
	return strings.NewReplacer(pairs...)
}
