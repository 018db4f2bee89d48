package configs

import (
	"errors"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zones must mean the same on every host
)

// BuildWindow is a time of the week, in the zone of its image.
type BuildWindow struct {
	Text string // as configured
	Days [7]bool
	// From and To are minutes after midnight. A window whose end is not after
	// its start goes on into the next day; the day that counts is the first.
	From, To int
}

const endOfDay = 24 * 60

var errWindow = errors.New(`expected [DAYS] HH:MM-HH:MM, as "22:00-06:00" or "Mon-Fri,Sun 20:00-23:30"`)

// weekdays in the order of time.Weekday.
var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// ParseBuildWindow reads "Mon-Fri,Sun 22:00-06:00". Without days it is every
// day.
func ParseBuildWindow(text string) (BuildWindow, error) {
	w := BuildWindow{Text: text}
	parts := strings.Fields(text)
	if len(parts) == 1 {
		parts = []string{"sun-sat", parts[0]}
	}
	if len(parts) != 2 {
		return BuildWindow{}, errWindow
	}
	for span := range strings.SplitSeq(strings.ToLower(parts[0]), ",") {
		if err := w.addDays(span); err != nil {
			return BuildWindow{}, err
		}
	}
	from, to, _ := strings.Cut(parts[1], "-")
	var err1, err2 error
	w.From, err1 = minuteOfDay(from)
	w.To, err2 = minuteOfDay(to)
	if err1 != nil || err2 != nil || w.From == endOfDay {
		return BuildWindow{}, errWindow
	}
	return w, nil
}

// addDays adds "mon" or "fri-mon".
func (w *BuildWindow) addDays(span string) error {
	first, last, isRange := strings.Cut(span, "-")
	if !isRange {
		last = first
	}
	from, to := slices.Index(weekdays, first), slices.Index(weekdays, last)
	if from < 0 || to < 0 {
		return errWindow
	}
	for day := from; ; day = (day + 1) % 7 {
		w.Days[day] = true
		if day == to {
			return nil
		}
	}
}

// minuteOfDay reads 22:30. 24:00 is the end of the day.
func minuteOfDay(text string) (int, error) {
	if text == "24:00" {
		return endOfDay, nil
	}
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, errWindow
	}
	return t.Hour()*60 + t.Minute(), nil
}

// Contains reports whether t, taken in its own zone, is within the window.
func (w BuildWindow) Contains(t time.Time) bool {
	minute := t.Hour()*60 + t.Minute()
	today, yesterday := w.Days[t.Weekday()], w.Days[(t.Weekday()+6)%7]
	if w.From < w.To {
		return today && w.From <= minute && minute < w.To
	}
	return today && minute >= w.From || yesterday && minute < w.To
}

// Location is the zone of the image's schedule and windows. It is UTC when the
// name is unknown, which Load refuses.
func (i *DiskImage) Location() *time.Location {
	zone, err := time.LoadLocation(i.RebuildTimezone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// MayBuildAt reports whether a scheduled build of the image may start at t.
func (i *DiskImage) MayBuildAt(t time.Time) bool { return i.mayBuildAt(t.In(i.Location())) }

func (i *DiskImage) mayBuildAt(local time.Time) bool {
	return len(i.BuildWindows) == 0 ||
		slices.ContainsFunc(i.BuildWindows, func(w BuildWindow) bool { return w.Contains(local) })
}

// NextWindow is the first minute, not before t, at which a scheduled build of
// the image may start. It is t itself when t is within a window.
func (i *DiskImage) NextWindow(t time.Time) time.Time {
	zone := i.Location()
	for next := t; next.Before(t.Add(8 * 24 * time.Hour)); next = next.Truncate(time.Minute).Add(time.Minute) {
		if i.mayBuildAt(next.In(zone)) {
			return next
		}
	}
	return t // every window has a day and a minute, so this is not reached
}

// WindowEnd is the first minute after t at which a scheduled build of the image
// may no longer start. It is zero when t is in no window, or windows never end.
func (i *DiskImage) WindowEnd(t time.Time) time.Time {
	zone := i.Location()
	if len(i.BuildWindows) == 0 || !i.mayBuildAt(t.In(zone)) {
		return time.Time{}
	}
	for end := t; end.Before(t.Add(8 * 24 * time.Hour)); {
		end = end.Truncate(time.Minute).Add(time.Minute)
		if !i.mayBuildAt(end.In(zone)) {
			return end
		}
	}
	return time.Time{}
}

// String is the window as it was configured.
func (w BuildWindow) String() string { return w.Text }

// buildWindows decodes a list of windows.
func buildWindows(out *[]BuildWindow) decodeFunc {
	return func(v value) {
		*out = nil
		for _, item := range v.items() {
			text, ok := item.text()
			if !ok {
				continue
			}
			w, err := ParseBuildWindow(text)
			if err != nil {
				item.fail("%q is no build window: %v", text, err)
				continue
			}
			if w.From == w.To {
				item.report(refused, "%q begins and ends at the same time, which takes a whole day; write 00:00-24:00 for that", text)
			}
			*out = append(*out, w)
		}
		if len(v.node.Content) == 0 {
			v.report(notice, "no window lets builds begin at any time")
		}
	}
}
