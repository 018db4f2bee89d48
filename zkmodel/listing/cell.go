package listing

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"poolkeeper/zkmodel"
)

// text is a cell of a string; "" is null.
func text[S ~string](s S) cell {
	if s == "" {
		return cell{}
	}
	return cell{text: shown(string(s)), value: string(s)}
}

// maxText is how many characters of a cell people are shown: a row is as wide as
// the widest of all rows, so one record could make a listing of any size.
const maxText = 256

// shown is foreign text as people are shown it.
func shown(text string) string {
	n := 0
	for i := range text {
		if n == maxText-1 && len(text)-i > utf8.UTFMax {
			return printable(text[:i]) + "…"
		}
		n++
	}
	return printable(text)
}

// number is a cell of a number.
func number(n int) cell { return cell{text: strconv.Itoa(n), value: n, rank: float64(n)} }

// list is a cell of several strings.
func list[S ~[]string](items S) cell {
	return cell{text: shown(joined(items)), value: append([]string{}, items...)}
}

// joined joins items with commas, as far as they are shown.
func joined[S ~[]string](items S) string {
	length := 0
	for i, item := range items {
		if length += len(item) + 1; length > maxText*utf8.UTFMax {
			items = items[:i+1]
			break
		}
	}
	return strings.Join(items, ",")
}

// flag is a cell of a truth value, in Python's spelling.
func flag(b bool) cell {
	if b {
		return cell{text: "True", value: true}
	}
	return cell{text: "False", value: false}
}

// foreign is a cell of a value whose shape is not ours.
func foreign(v zkmodel.Value) cell {
	if v.IsNull() {
		return cell{}
	}
	return cell{text: shown(python(v)), value: v}
}

// size is a cell of a number of bytes; 0 is null.
func size(bytes int64) cell {
	if bytes == 0 {
		return cell{}
	}
	return cell{text: humanize.IBytes(uint64(bytes)), value: bytes, rank: float64(bytes)}
}

// hidden is a cell for JSON only.
func hidden(value any) cell { return cell{value: value} }

// since is how long ago a time was, the time itself in JSON as whole seconds
// since 1970: that is what Nodepool's status page gives as "age".
func since(t, now time.Time) cell {
	if t.IsZero() {
		return cell{}
	}
	return cell{text: age(now.Sub(t)), value: t.Unix(), own: t.UTC().Format(time.RFC3339), rank: now.Sub(t).Seconds()}
}

// retry is when something that failed is tried again: how long until then, the
// time itself in JSON. None is left when it waits for nothing but a worker.
func retry(at zkmodel.Epoch, failed bool, now time.Time) cell {
	if at == 0 || !failed {
		return cell{}
	}
	wait := at.Time().Sub(now)
	return cell{text: age(wait), value: at.Time().Unix(), own: at.Time().UTC().Format(time.RFC3339), rank: wait.Seconds()}
}

// age formats a time span as DD:HH:MM:SS.
func age(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	return fmt.Sprintf("%02d:%02d:%02d:%02d", s/86400, s/3600%24, s/60%60, s%60)
}
