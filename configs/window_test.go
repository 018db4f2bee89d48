package configs

import (
	"testing"
	"time"
)

func TestBuildWindows(t *testing.T) {
	// 2 March 2026 is a Monday.
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 3, day, hour, minute, 30, 0, time.UTC) }
	tests := []struct {
		window string
		t      time.Time
		want   bool
	}{
		{"22:00-06:00", at(2, 21, 59), false},
		{"22:00-06:00", at(2, 22, 0), true},
		{"22:00-06:00", at(3, 5, 59), true},
		{"22:00-06:00", at(3, 6, 0), false},
		{"1:00-2:30", at(2, 2, 29), true},
		{"1:00-2:30", at(2, 2, 30), false},
		{"Mon 22:00-06:00", at(2, 23, 0), true},
		{"Mon 22:00-06:00", at(3, 3, 0), true},
		{"Mon 22:00-06:00", at(2, 3, 0), false},
		{"Mon 22:00-06:00", at(3, 23, 0), false},
		{"Fri-Mon 00:00-24:00", at(1, 12, 0), true},
		{"Fri-Mon 00:00-24:00", at(3, 12, 0), false},
		{"tue,WED 12:00-13:00", at(4, 12, 0), true},
		{"00:00-00:00", at(4, 12, 0), true},
	}
	for _, test := range tests {
		w, err := ParseBuildWindow(test.window)
		if err != nil {
			t.Errorf("ParseBuildWindow(%q): %v", test.window, err)
			continue
		}
		if got := w.Contains(test.t); got != test.want || w.String() != test.window {
			t.Errorf("%q contains %v: %t, want %t", w, test.t, got, test.want)
		}
	}
}

func TestNextWindow(t *testing.T) {
	c := load(t, `
zookeeper-servers: [{host: localhost}]
diskimages:
  - {name: always}
  - {name: nights, rebuild-timezone: Europe/Berlin, build-windows: [Sat 22:00-23:00, Wed 03:00-04:00]}
`)
	monday := fixedMonday()
	if got := image(t, c, "always").NextWindow(monday); !got.Equal(monday) {
		t.Errorf("next window of always is %v", got)
	}
	nights := image(t, c, "nights")
	want := time.Date(2026, 3, 4, 2, 0, 0, 0, time.UTC) // three o'clock in Berlin
	if got := nights.NextWindow(monday); !got.Equal(want) || nights.MayBuildAt(monday) || !nights.MayBuildAt(want) {
		t.Errorf("next window of nights is %v, want %v", got, want)
	}
	if zone := (&DiskImage{RebuildTimezone: "Mars/Phobos"}).Location(); zone != time.UTC {
		t.Errorf("an unknown zone is %v, want UTC", zone)
	}
}

func fixedMonday() time.Time { return time.Date(2026, 3, 2, 12, 0, 30, 0, time.UTC) }
