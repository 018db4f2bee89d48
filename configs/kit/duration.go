package kit

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// weeksAndDays are the units that time.ParseDuration does not have, with the rest of the text.
var weeksAndDays = regexp.MustCompile(`^(?:(\d{1,4})w)?(?:(\d{1,5})d)?(.*)$`)

// ParseDuration reads a duration as time.ParseDuration does, with weeks and days before the rest: 1w, 2d, 1d12h.
func ParseDuration(text string) (time.Duration, error) {
	parts := weeksAndDays.FindStringSubmatch(text)
	if parts == nil || parts[1]+parts[2] == "" {
		return time.ParseDuration(text)
	}
	weeks, _ := strconv.Atoi(parts[1]) // digits, or nothing
	days, _ := strconv.Atoi(parts[2])
	whole := time.Duration(7*weeks+days) * 24 * time.Hour
	if parts[3] == "" {
		return whole, nil
	}
	rest, err := time.ParseDuration(parts[3])
	if err != nil || rest < 0 {
		return 0, fmt.Errorf("%q is no duration, such as 30m, 2d or 1w", text)
	}
	return whole + rest, nil
}
