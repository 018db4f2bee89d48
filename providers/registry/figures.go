package registry

import (
	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/providers"
)

// Knowledge is what a provider knows of its cloud.
type Knowledge struct {
	Ends  []providers.End   // of providers.Ender
	Calls []providers.Calls // of providers.Asker
}

// Known is what the providers that are open know, by provider.
func (r *Registry) Known() map[string]Knowledge {
	r.mu.Lock()
	opened := map[string]providers.Provider{}
	for name, e := range r.current {
		if e.known != nil {
			opened[name] = e.known
		}
	}
	r.mu.Unlock()
	all := make(map[string]Knowledge, len(opened))
	for name, p := range opened {
		var k Knowledge
		if ender, ok := p.(providers.Ender); ok {
			k.Ends = ender.Ends()
		}
		if asker, ok := p.(providers.Asker); ok {
			k.Calls = asker.Calls()
		}
		all[name] = k
	}
	return all
}

// Figures tells when certificates and credentials of providers end, and how long their clouds
// take to answer. It implements prometheus.Collector.
type Figures struct {
	known                          func() map[string]Knowledge
	certificate, credential, calls *prometheus.Desc
}

// NewFigures tells what known says, which is asked with each scrape.
func NewFigures(known func() map[string]Knowledge) *Figures {
	return &Figures{
		known: known,
		calls: prometheus.NewDesc("poolkeeper_provider_call_seconds",
			"How long answers of the provider's cloud took, by method and resource; image data is not counted.", []string{"provider", "operation"}, nil),
		certificate: prometheus.NewDesc("poolkeeper_provider_certificate_expiry_timestamp_seconds",
			"When a certificate ends without which the provider cannot be used: the first of a service's chain, our own, or the last of a file of CAs.",
			[]string{"provider", "use", "name"}, nil),
		credential: prometheus.NewDesc("poolkeeper_provider_credential_expiry_timestamp_seconds",
			"When the application credential or the password ends that the provider is used with, where the cloud tells.",
			[]string{"provider", "use", "name"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (f *Figures) Describe(out chan<- *prometheus.Desc) {
	out <- f.certificate
	out <- f.credential
	out <- f.calls
}

// Collect implements prometheus.Collector.
func (f *Figures) Collect(out chan<- prometheus.Metric) {
	for provider, known := range f.known() {
		for _, c := range known.Calls {
			out <- prometheus.MustNewConstHistogram(f.calls, c.Count, c.Seconds, c.Within, provider, c.Operation)
		}
		told := map[[2]string]bool{} // of one thing told twice Prometheus would take nothing at all
		for _, end := range known.Ends {
			if key := [2]string{string(end.Use), end.Name}; told[key] {
				continue
			} else {
				told[key] = true
			}
			desc := f.credential
			if end.Use.IsCertificate() {
				desc = f.certificate
			}
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(end.At.Unix()), provider, string(end.Use), end.Name)
		}
	}
}
