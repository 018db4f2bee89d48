package web

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// The media types that a listing has. People's browsers get plain text too, as
// from Nodepool.
const (
	typeHTML = "text/html"
	typeText = "text/plain"
	typeJSON = "application/json"
)

// negotiate picks the offer that an Accept header likes best: by its weight,
// then by how exactly it is named, then in the order of the offers. "" says
// that none will do. No header accepts everything.
func negotiate(accept []string, offers ...string) string {
	ranges := parseAccept(strings.Join(accept, ","))
	if len(ranges) == 0 {
		return offers[0]
	}
	type candidate struct {
		offer string
		mediaRange
	}
	var candidates []candidate
	for _, offer := range offers {
		if best, ok := ranges.weigh(offer); ok && best.weight > 0 {
			candidates = append(candidates, candidate{offer, best})
		}
	}
	if len(candidates) == 0 {
		return ""
	}
	return slices.MinFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.exactness(), a.exactness()))
	}).offer
}

// mediaRange is one item of an Accept header.
type mediaRange struct {
	kind   string // "type/subtype", "type/*" or "*/*"
	weight float64
}

type mediaRanges []mediaRange

// parseAccept reads an Accept header (RFC 9110 §12.5.1). Items that cannot be
// read are passed over; parameters other than the weight do not matter here.
func parseAccept(header string) mediaRanges {
	var ranges mediaRanges
	for item := range strings.SplitSeq(header, ",") {
		kind, params, _ := strings.Cut(item, ";")
		kind = strings.ToLower(strings.TrimSpace(kind))
		if kind == "*" { // an old Java's way to say it
			kind = "*/*"
		}
		if !strings.Contains(kind, "/") {
			continue
		}
		weight, ok := parseWeight(params)
		if !ok {
			continue
		}
		ranges = append(ranges, mediaRange{kind, weight})
	}
	return ranges
}

// parseWeight finds the q parameter; 1 when there is none.
func parseWeight(params string) (weight float64, ok bool) {
	for param := range strings.SplitSeq(params, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(strings.TrimSpace(key), "q") {
			weight, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return weight, err == nil && weight >= 0 && weight <= 1
		}
	}
	return 1, true
}

// weigh finds the range that names the offer most exactly: that one counts.
func (rs mediaRanges) weigh(offer string) (best mediaRange, ok bool) {
	for _, r := range rs {
		if r.matches(offer) && (!ok || r.exactness() > best.exactness()) {
			best, ok = r, true
		}
	}
	return best, ok
}

func (r mediaRange) matches(offer string) bool {
	if r.kind == "*/*" || r.kind == offer {
		return true
	}
	prefix, isRange := strings.CutSuffix(r.kind, "*")
	return isRange && strings.HasSuffix(prefix, "/") && strings.HasPrefix(offer, prefix)
}

// exactness is 2 for type/subtype, 1 for type/*, 0 for */*.
func (r mediaRange) exactness() int { return 2 - strings.Count(r.kind, "*") }
