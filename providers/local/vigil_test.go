package local

import (
	"strings"
	"testing"
	"time"
)

func TestVigilCountsResets(t *testing.T) {
	v := newVigil(0, time.Now())
	for i := range maxResets {
		if failure := v.event("RESET", eventData{Guest: true}); failure != "" {
			t.Fatalf("reset %d: %s", i+1, failure)
		}
	}
	if failure := v.event("RESET", eventData{Guest: true}); failure == "" {
		t.Error("a circle is not seen")
	}
	for _, name := range []string{"STOP", "RESUME", "RTC_CHANGE", "NIC_RX_FILTER_CHANGED"} {
		if failure := v.event(name, eventData{}); failure != "" {
			t.Errorf("%s: %s", name, failure)
		}
	}
}

// Silence is that of the console and the network together, and begins anew with
// every sign.
func TestVigilOfSilence(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	v := newVigil(30*time.Second, start)
	if v.silent(at(29)) != "" {
		t.Error("silent after 29 s")
	}
	v.sign(7, false, at(29)) // a line on the console
	v.sign(7, true, at(50))  // a packet
	v.sign(7, false, at(60))
	if v.silent(at(79)) != "" {
		t.Error("silent 29 s after the packet")
	}
	if failure := v.silent(at(80)); !strings.Contains(failure, "for 30s") {
		t.Errorf("30 s after the packet: %q", failure)
	}
	if v = newVigil(0, start); v.silent(at(1e6)) != "" {
		t.Error("silence counts where it is not asked for")
	}
}

func TestVigilOfStates(t *testing.T) {
	for state, failed := range map[string]bool{
		"running": false, "prelaunch": false, "paused": false, "": false,
		"internal-error": true, "io-error": true, "guest-panicked": true, "shutdown": true,
	} {
		if failure := newVigil(0, time.Now()).state(state); (failure != "") != failed {
			t.Errorf("%q: %q", state, failure)
		}
	}
}
