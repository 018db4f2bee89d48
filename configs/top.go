package configs

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// topKeys is the schema of the file as a whole.
func (l *loader) topKeys() fields {
	c := l.cfg
	policy := "warn" // read before everything else, see decodeMain
	keys := fields{
		"elements-dir":           text(&c.ElementsDir),
		"images-dir":             text(&c.ImagesDir),
		"build-log-dir":          text(&c.BuildLogDir),
		"build-log-retention":    l.buildLogRetention,
		"max-hold-age":           l.maxHoldAge,
		"webapp":                 l.webApp,
		"diskimages":             l.diskImages,
		"labels":                 named(&c.Labels, func(x Label) string { return x.Name }, l.label),
		"providers":              named(&c.Providers, func(x Provider) string { return x.Name }, l.provider),
		"tenant-resource-limits": named(&c.TenantLimits, func(x TenantLimit) string { return x.Tenant }, l.tenantLimit),

		// Ours.
		"unknown-keys":           oneOf(&policy, "warn", "error"),
		"max-concurrent-builds":  number(&c.MaxConcurrentBuilds, 0, unlimited),
		"max-concurrent-uploads": number(&c.MaxConcurrentUploads, 0, unlimited),
		"build-env-allow":        envAllow(&l.cfg.BuildEnvAllow),
		"hook-env-allow":         envAllow(&l.cfg.HookEnvAllow),
		"build-disk-reserve":     size(&c.BuildDiskReserve),
		"host-labels":            hostLabels(&c.HostLabels),
		"pool-order":             oneOf(&c.PoolOrder, OrderSpread, OrderFill),
		"launcher-grace":         wholeSeconds(&c.LauncherGrace, 0),
		"events":                 l.events,
		"hooks":                  named(&c.Hooks, func(x Hook) string { return x.Name }, l.hook),
		"sources":                named(&c.Sources, func(x Source) string { return x.Name }, l.source),
		"waves":                  named(&c.Waves, func(x Wave) string { return x.Name }, l.wave),
	}
	maps.Copy(keys, l.zooKeeperKeys(&c.ZooKeeper))
	keys["zookeeper-timeout"] = func(v value) {
		seconds(&c.ZooKeeper.Timeout, minSession)(v)
		v.sane(c.ZooKeeper.Timeout, time.Hour)
	}
	if l.opts.HostPath != "" {
		l.leaveToHost(keys)
	}
	return keys
}

// buildLogRetention: 0 keeps one log, as in Nodepool.
func (l *loader) buildLogRetention(v value) {
	n := l.cfg.BuildLogRetention
	number(&n, -unlimited, unlimited)(v)
	if n == 0 {
		n = 1
	}
	l.cfg.BuildLogRetention = n
}

// maxHoldAge: what is not positive is no limit.
func (l *loader) maxHoldAge(v value) {
	wholeSeconds(&l.cfg.MaxHoldAge, -unlimited)(v)
	l.cfg.MaxHoldAge = max(l.cfg.MaxHoldAge, 0)
}

func (l *loader) label(v value) Label {
	var label Label
	have := v.decode("label", fields{
		"name":          checkedName("label", &label.Name),
		"min-ready":     minReady(&label.MinReady),
		"max-ready-age": wholeSeconds(&label.MaxReadyAge, 0),
	})
	v.require(have, "name")
	v.unused(func() bool { return label.Name == "" || l.offered(label.Name) }, "no pool has the label %q, no request for it can be fulfilled", label.Name)
	return label
}

// minReady takes what Nodepool's documentation suggests for "none": -1.
func minReady(out *int) decodeFunc {
	return func(v value) {
		number(out, -unlimited, unlimited)(v)
		if *out < 0 {
			v.report(notice, "%d keeps no node ready, as 0 does", *out)
			*out = 0
		}
	}
}

// tenantLimit: the keys that Nodepool names are resources of all clouds, any
// other key is the name of a resource of one.
func (l *loader) tenantLimit(v value) TenantLimit {
	v.item = nil // without its limits a tenant would have none
	t := TenantLimit{Limits: map[string]int{}}
	known := map[string]string{
		"max-servers": "instances", "max-cores": "cores", "max-ram": "ram",
		"max-volumes": "volumes", "max-volume-gb": "volume-gb",
	}
	keys := fields{"tenant-name": notEmpty(&t.Tenant)}
	for key, resource := range known {
		keys[key] = limit(t.Limits, resource)
	}
	entries, _ := v.entries()
	for _, e := range entries {
		if keys[e.key] == nil {
			if closest(e.key, slices.Collect(maps.Keys(known))) != "" {
				l.unknownIn(v.at.String(), e.key) // or it is misspelt
			}
			keys[e.key] = limit(t.Limits, e.key)
		}
	}
	v.says(func() Shape { return Shape{Values: &Shape{Type: Integer}} })
	v.require(v.decode("tenant limit", keys), "tenant-name")
	return t
}

func limit(limits map[string]int, resource string) decodeFunc {
	return func(v value) {
		if v.says(func() Shape { return wholeNumber("", none, 0, unlimited) }) {
			return
		}
		var n int
		number(&n, 0, unlimited)(v)
		limits[resource] = n
	}
}

// envAllow adds to the variables that a build or a hook sees.
func envAllow(allow *[]string) decodeFunc {
	return func(v value) {
		moreTexts(allow)(v)
		for _, name := range *allow {
			if name == "" || strings.ContainsAny(name, "= \t\n") || strings.Contains(strings.TrimSuffix(name, "*"), "*") {
				v.fail("%q is neither the name of a variable nor the beginning of one and a *", name)
			}
		}
	}
}

// size decodes a number of bytes: 500M, 2G (powers of 1024), or plain bytes.
func size(out *int64) decodeFunc {
	units := map[string]int64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
	return func(v value) {
		if v.says(func() Shape { return Shape{Type: Size, Pattern: sizePattern, Default: sizeText(*out)} }) {
			return
		}
		s, ok := v.text()
		if !ok {
			return
		}
		digits := strings.TrimRight(s, "KMGT")
		unit, known := units[s[len(digits):]]
		n, err := parseInt(digits)
		if err != nil || !known || n < 0 || n > (1<<50)/unit {
			v.fail("expected a size as 500M or 2G, got %s", v.describe())
			return
		}
		*out = n * unit
	}
}

// skipUnsupported takes out the providers of drivers that we do not have.
func (l *loader) skipUnsupported() {
	l.cfg.Providers = slices.DeleteFunc(l.cfg.Providers, func(p Provider) bool {
		if !foreignDrivers[p.Driver] {
			return false
		}
		l.cfg.Skipped = append(l.cfg.Skipped, SkippedProvider{Name: p.Name, Driver: p.Driver})
		return true
	})
}
