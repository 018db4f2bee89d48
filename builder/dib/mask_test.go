package dib

import (
	"strings"
	"testing"
)

// A line without an end is written in parts; no part may begin in a secret.
func TestSecretsInLinesWithoutEndAreMasked(t *testing.T) {
	secrets := []string{"hunter22", "a secret with hunter22 in it"}
	for _, secret := range secrets {
		for shift := range len(secret) + 2 {
			text := strings.Repeat("x", longestLine-shift) + secret + strings.Repeat("y", 2*longestLine)
			var log strings.Builder
			if err := copyMasked(&log, strings.NewReader(text), secrets); err != nil {
				t.Fatal(err)
			}
			if want := strings.Replace(text, secret, "********", 1); log.String() != want {
				t.Errorf("%q, %d before the cut: %d bytes, not %d", secret, shift, log.Len(), len(want))
			}
		}
	}
}

func TestOverlappingSecretsHoldUpNothing(t *testing.T) {
	var log strings.Builder
	text := strings.Repeat("a", 8*longestHeld)
	if err := copyMasked(&log, strings.NewReader(text), []string{"aaaaaa"}); err != nil {
		t.Fatal(err)
	}
	if left := strings.Count(log.String(), "a"); left > 64 {
		t.Errorf("%d bytes were not masked", left)
	}
}
