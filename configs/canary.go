package configs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Canary has a new build of an image serve a share of new nodes first, in each provider.
type Canary struct {
	Share       float64       // percent of new nodes; one more may use it
	For         time.Duration // from the first node on
	MinNodes    int           // that must have served before it serves without a limit
	MaxFailures int           // from this many on they are compared with those of the build before
	Delete      bool          // a build that failed is deleted in the cloud, too
}

// The defaults of a canary. That five failures are needed is of the rule that compares.
const (
	canaryShare       = 5.0
	canaryFor         = 2 * time.Hour
	canaryMinNodes    = 3
	canaryMaxFailures = 5
)

// sharePattern is what a share may look like.
var sharePattern = regexp.MustCompile(`^(\d{1,3}(?:\.\d{1,3})?)\s?%$`)

// canary decodes the canary of an image.
func canary(out **Canary) decodeFunc {
	return func(v value) {
		v.item = nil // without its limits it would be another canary
		c := &Canary{Share: canaryShare, For: canaryFor, MinNodes: canaryMinNodes, MaxFailures: canaryMaxFailures}
		retreat := "keep"
		v.decode("canary", fields{
			"share":        sharePercent(&c.Share),
			"for":          timeSpan(&c.For),
			"min-nodes":    number(&c.MinNodes, 1, unlimited),
			"max-failures": number(&c.MaxFailures, 1, unlimited),
			"retreat":      oneOf(&retreat, "keep", "delete"),
		})
		c.Delete = retreat == "delete"
		*out = c
	}
}

// sharePercent decodes a share such as 5%.
func sharePercent(out *float64) decodeFunc {
	return func(v value) {
		v.says(func() Shape { return Shape{Pattern: sharePattern.String(), Default: fmt.Sprintf("%g%%", *out)} })
		text, ok := v.text()
		if !ok {
			return
		}
		share := 0.0
		if found := sharePattern.FindStringSubmatch(strings.TrimSpace(text)); found != nil {
			share, _ = strconv.ParseFloat(found[1], 64)
		}
		if share <= 0 || share > 100 {
			v.fail("expected a share of nodes above 0%% and up to 100%%, such as 5%%, got %s", v.describe())
			return
		}
		*out = share
	}
}

// timeSpan decodes a number of seconds, or a time such as 90m or 2h.
func timeSpan(out *time.Duration) decodeFunc {
	return func(v value) {
		v.says(func() Shape {
			return Shape{Type: Span, Unit: "seconds, or as 90m or 2h", Pattern: spanPattern, Default: spanText(*out)}
		})
		text, ok := v.text()
		if !ok {
			return
		}
		d, err := time.ParseDuration(text)
		if n, is := strconv.Atoi(text); is == nil && n < int(longest/time.Second) {
			d, err = time.Duration(n)*time.Second, nil
		}
		if err != nil || d <= 0 || d > longest {
			v.fail("expected seconds, or a time such as 90m or 2h, got %s", v.describe())
			return
		}
		*out = d
	}
}

// HasCanary reports whether any image has a canary.
func (c *Config) HasCanary() bool {
	return slices.ContainsFunc(c.DiskImages, func(i DiskImage) bool { return i.Canary != nil })
}

// CanaryOf is the canary of an image; nil when it has none.
func (c *Config) CanaryOf(image string) *Canary {
	if i, ok := c.DiskImage(image); ok {
		return i.Canary
	}
	return nil
}
