package history

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"poolkeeper/zkmodel/history"
)

// How much is shown.
const (
	usualSpan  = 24 * time.Hour
	mostSpan   = 3650 * 24 * time.Hour
	pageLimit  = 200  // entries of a page
	jsonLimit  = 200  // of JSON, where nothing else is asked for
	mostLimit  = 1000 // of JSON
	bucketsAll = 60   // bars of the timeline
	longest    = 512  // bytes of what is asked for
)

// The keys of a URL.
const (
	keyKind, keyOutcome, keyState, keyImage, keyBuild   = "kind", "outcome", "state", "image", "build"
	keyProvider, keyLabel, keyID, keyRequest            = "provider", "label", "id", "request"
	keyLast, keySince, keyUntil, keyBefore, keyLimitKey = "last", "since", "until", "before", "limit"
)

// parse reads what a URL asks for. last= is a time until now as "24h" or "7d"; since= and
// until= are as RFC 3339 has them.
func parse(values url.Values, now time.Time) (history.Query, error) {
	q := history.Query{Until: now, Since: now.Add(-usualSpan), Buckets: bucketsAll, Limit: pageLimit, Before: values.Get(keyBefore)}
	for key, out := range map[string]*string{
		keyState: &q.Was, keyImage: &q.Image, keyBuild: &q.Build, keyProvider: &q.Provider, keyLabel: &q.Label, keyID: &q.ID, keyRequest: &q.Request,
	} {
		if *out = values.Get(key); len(*out) > longest {
			return q, fmt.Errorf("%s= is too long", key)
		}
	}
	if kind := history.Kind(values.Get(keyKind)); kind != "" {
		if !slices.Contains(history.Kinds, kind) {
			return q, fmt.Errorf("kind=%.40q: want one of %s", kind, words(history.Kinds))
		}
		q.Kinds = []history.Kind{kind}
	}
	if q.Outcome = history.Outcome(values.Get(keyOutcome)); q.Outcome != "" && !slices.Contains(history.Outcomes, q.Outcome) {
		return q, fmt.Errorf("outcome=%.40q: want one of %s", q.Outcome, words(history.Outcomes))
	}
	if last := values.Get(keyLast); last != "" {
		span, err := parseSpan(last)
		if err != nil {
			return q, err
		}
		q.Since = now.Add(-span)
	}
	for key, out := range map[string]*time.Time{keySince: &q.Since, keyUntil: &q.Until} {
		if text := values.Get(key); text != "" {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return q, fmt.Errorf("%s=%.40q: want a time as 2026-11-23T07:00:00Z", key, text)
			}
			*out = at
		}
	}
	if !q.Since.Before(q.Until) || q.Until.Sub(q.Since) > mostSpan {
		return q, fmt.Errorf("from %s until %s is no time", q.Since.UTC().Format(time.RFC3339), q.Until.UTC().Format(time.RFC3339))
	}
	return q, nil
}

// parseLimit reads how many entries JSON is to have.
func parseLimit(text string) (int, error) {
	n, err := strconv.Atoi(cmp.Or(text, strconv.Itoa(jsonLimit)))
	if err != nil || n < 1 || n > mostLimit {
		return 0, fmt.Errorf("limit=%.40q: want a number from 1 to %d", text, mostLimit)
	}
	return n, nil
}

// parseSpan reads a length of time as "24h", "90m" or "7d".
func parseSpan(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && time.Duration(n) <= mostSpan/(24*time.Hour) {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && d > 0 && d <= mostSpan {
		return d, nil
	}
	return 0, fmt.Errorf("last=%.40q: want a time as 90m, 24h or 7d", text)
}

func words[S ~string](all []S) string {
	var list []string
	for _, one := range all {
		list = append(list, string(one))
	}
	return strings.Join(list, ", ")
}
