package configs

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What PyYAML makes of these texts.
func TestParseInt(t *testing.T) {
	tests := []struct {
		text string
		want int64
		err  error
	}{
		{"0", 0, nil},
		{"00", 0, nil},
		{"140", 140, nil},
		{"+7", 7, nil},
		{"-7", -7, nil},
		{"0140", 96, nil},
		{"-010", -8, nil},
		{"1_40", 140, nil},
		{"0x8C", 140, nil},
		{"0x8_C", 140, nil},
		{"0b1001", 9, nil},
		{"2:20", 140, nil},
		{"-2:20", -140, nil},
		{"1:00:00", 3600, nil},
		{"9223372036854775807", math.MaxInt64, nil},
		{"9223372036854775808", 0, errRange},
		{"1111111111222222222233333333334444444444", 0, errRange},
		{"9999999999999999999:00", 0, errRange},
		{"999999999999999999:59:59:59", 0, errRange},
		{"", 0, errNotNumber},
		{"08", 0, errNotNumber},
		{"0x", 0, errNotNumber},
		{"0b_", 0, errNotNumber},
		{"2:60", 0, errNotNumber},
		{"0:20", 0, errNotNumber},
		{"1.0", 0, errNotNumber},
		{"1e3", 0, errNotNumber},
		{"0o17", 0, errNotNumber},
		{"five", 0, errNotNumber},
		{"--1", 0, errNotNumber},
	}
	for _, test := range tests {
		got, err := parseInt(test.text)
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("parseInt(%q) = %d, %v, want %d, %v", test.text, got, err, test.want, test.err)
		}
	}
}

func TestParseFloat(t *testing.T) {
	tests := []struct {
		text string
		want float64
		err  error
	}{
		{"1", 1, nil},
		{"0140", 96, nil},
		{"0.25", 0.25, nil},
		{"1.", 1, nil},
		{".5", 0.5, nil},
		{"1_000.5", 1000.5, nil},
		{"1.5e+2", 150, nil},
		{"1:30.5", 90.5, nil},
		{"-1:30.5", -90.5, nil},
		{".nan", 0, errRange},
		{".inf", 0, errRange},
		{"-.Inf", 0, errRange},
		{"1.0e+999", 0, errRange},
		{"99999999999999999999:00.5", 0, errRange},
		{"nan", 0, errNotNumber},
		{"12e4567", 0, errNotNumber}, // the beginning of a hash, not a number
		{"1e3", 0, errNotNumber},
		{"-.5", 0, errNotNumber},
		{"._", 0, errNotNumber},
		{"Infinity", 0, errNotNumber},
		{"1.2.3", 0, errNotNumber},
		{"", 0, errNotNumber},
	}
	for _, test := range tests {
		got, err := parseFloat(test.text)
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("parseFloat(%q) = %v, %v, want %v, %v", test.text, got, err, test.want, test.err)
		}
	}
}

// The habits of YAML 1.1, and texts that look like something else.
func TestScalarsAsNodepoolReadsThem(t *testing.T) {
	c := load(t, site+`
build-log-retention: 0xA
max-hold-age: 2:20
webapp: {port: 017605}
zookeeper-timeout: 0x0C
build-disk-reserve: 3M
providers:
  - name: north
    cloud: example
    boot-timeout: 1_40
    rate: 0.001
    clean-floating-ips: Yes
    pools:
      - name: main
        auto-floating-ip: OFF
        node-attributes:
          list: [0140, 1.5, yes, "yes", ~, text, 2001-01-01, 12e4]
          map: {a: {b: -1}}
`)
	north := provider(t, c, "north")
	got := []any{
		c.BuildLogRetention, c.MaxHoldAge, c.WebApp.Port, c.ZooKeeper.Timeout, c.BuildDiskReserve,
		north.BootTimeout, north.Rate, north.CleanFloatingIPs, north.Pools[0].AutoFloatingIP,
		north.Pools[0].NodeAttributes,
	}
	want := []any{
		10, 140 * time.Second, 8069, 12 * time.Second, int64(3 << 20),
		140 * time.Second, time.Millisecond, true, false,
		map[string]any{
			"list": []any{int64(96), 1.5, true, "yes", nil, "text", "2001-01-01", "12e4"},
			"map":  map[string]any{"a": map[string]any{"b": int64(-1)}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestTextKeepsItsText(t *testing.T) {
	c := load(t, `
zookeeper-servers: [{host: localhost}]
diskimages:
  - name: a
    release: 22.04
    env-vars: {ONE: 1, YES: yes, DOT: 0.10, OCTAL: 0140, NULL1: null, EMPTY: , TILDE: ~, TIME: 2:20, LONG: !!str 5}
  - {name: b, release: 0.10}
  - {name: c, release: 9}
  - {name: d, release: 2024-01-01}
`)
	want := map[string]string{
		"ONE": "1", "YES": "yes", "DOT": "0.10", "OCTAL": "0140", "NULL1": "null", "EMPTY": "",
		"TILDE": "~", "TIME": "2:20", "LONG": "5",
	}
	if diff := cmp.Diff(want, map[string]string(image(t, c, "a").EnvVars)); diff != "" {
		t.Errorf("env-vars (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"a": "22.04", "b": "0.10", "c": "9", "d": "2024-01-01"} {
		if got := image(t, c, name).Release; got != want {
			t.Errorf("release of %s is %q, want %q", name, got, want)
		}
	}
}

func TestMergeKeys(t *testing.T) {
	c := load(t, `
zookeeper-servers: [{host: localhost}]
diskimages:
  - name: a
    env-vars: &a {ONE: a, TWO: a, THREE: a}
  - name: b
    env-vars: &b {<<: *a, TWO: b, FOUR: b}
  - name: c
    env-vars:
      THREE: c
      <<: [{ONE: first, FIVE: first}, *b]
  - name: d
    env-vars: {"<<": text}
`)
	for name, want := range map[string]map[string]string{
		"b": {"ONE": "a", "TWO": "b", "THREE": "a", "FOUR": "b"},
		"c": {"ONE": "first", "TWO": "b", "THREE": "c", "FOUR": "b", "FIVE": "first"},
		"d": {"<<": "text"},
	} {
		if diff := cmp.Diff(want, map[string]string(image(t, c, name).EnvVars)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// PyYAML takes the last of two merge keys, and the first of a list below one.
func TestTwoMergeKeys(t *testing.T) {
	c := load(t, site+`
providers:
  - &one {name: one, cloud: a, region-name: ra, boot-timeout: 1}
  - &two {name: two, cloud: b, region-name: rb}
  - name: both
    <<: *one
    <<: *two
  - name: list
    <<: [*one, *two]
  - name: nested
    pools: []
    <<: {name: x, cloud: c}
    <<: {region-name: rc}
`)
	got := ""
	for _, p := range c.Providers {
		got += fmt.Sprintf("%s=%s/%s/%s ", p.Name, p.Cloud, p.Region, p.BootTimeout)
	}
	if want := "one=a/ra/1s two=b/rb/1m0s both=b/rb/1s list=a/ra/1s nested=c/rc/1m0s "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	warned := strings.Join(c.Warnings, "\n")
	if !strings.Contains(warned, ":11: providers[both].<<: there is another one below") || strings.Count(warned, "<<:") != 4 {
		t.Errorf("warnings\n%s", warned)
	}
}

func TestPoolOrder(t *testing.T) {
	for text, want := range map[string]string{"": OrderSpread, "pool-order: spread": OrderSpread, "pool-order: fill": OrderFill} {
		if got := load(t, site+text).PoolOrder; got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
