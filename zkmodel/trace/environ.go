package trace

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/redact"
)

// FromEnvironment makes the Tracer of a daemon, which sends to the collector that the
// environment names, over HTTP; nil where it names none. secrets learns those of the
// environment. log is told when spans begin to be lost, why and how many, and when they are sent again.
//
// Errors: an address that is none, or a protocol that is not spoken.
func FromEnvironment(ctx context.Context, getenv func(string) string, about About, secrets *redact.Secrets, log hclog.Logger) (*Tracer, error) {
	wanted, err := Wanted(getenv)
	if err != nil || !wanted {
		return nil, err
	}
	secrets.Set("collector of traces", secretsOf(getenv)...)
	for _, doubt := range doubts(getenv) {
		log.Warn("Traces are sent without what the environment names; a collector that needs it does not take them", "error", doubt)
	}
	return Open(ctx, about, secrets.Text, func(lost int, why error) {
		if why != nil {
			log.Warn("Traces are lost until the collector takes them again", "count", lost, "error", why)
			return
		}
		log.Info("Traces are sent again", "count", lost)
	})
}

// Wanted reports whether the environment names a collector, by OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, and what of it is not understood.
//
// docs/tracing.md lists them.
func Wanted(getenv func(string) string) (bool, error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false, nil
	}
	wanted := false
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		text := getenv(name)
		if text == "" {
			continue
		}
		wanted = true
		if u, err := url.Parse(text); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return false, fmt.Errorf("%s of the environment is no address such as http://collector.example.org:4318", name)
		}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		protocol := getenv(name)
		if wanted && protocol != "" && !slices.Contains([]string{"http/protobuf", "http/json"}, protocol) {
			return false, fmt.Errorf("%s of the environment: %q is not supported; use http/protobuf", name, protocol)
		}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"} {
		if wanted && !areHeaders(getenv(name)) {
			return false, fmt.Errorf("%s of the environment is no list such as key=value,other=value, with %%20 for a blank", name)
		}
	}
	return wanted, nil
}

// doubts are files of the environment that cannot be used.
func doubts(getenv func(string) string) (all []error) {
	for _, kind := range []string{"", "TRACES_"} {
		if name := "OTEL_EXPORTER_OTLP_" + kind + "CERTIFICATE"; getenv(name) != "" {
			text, err := os.ReadFile(getenv(name))
			if err == nil && !x509.NewCertPool().AppendCertsFromPEM(text) {
				err = fmt.Errorf("%s has no certificate in PEM", getenv(name))
			}
			if err != nil {
				all = append(all, fmt.Errorf("%s: %w", name, err))
			}
		}
		cert, key := "OTEL_EXPORTER_OTLP_"+kind+"CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_"+kind+"CLIENT_KEY"
		if getenv(cert) != "" || getenv(key) != "" {
			if _, err := tls.LoadX509KeyPair(getenv(cert), getenv(key)); err != nil {
				all = append(all, fmt.Errorf("%s and %s: %w", cert, key, err))
			}
		}
	}
	return all
}

// areHeaders reports whether a text is key=value,….
func areHeaders(text string) bool {
	for header := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(header, "=")
		name = strings.TrimSpace(name)
		_, err := url.PathUnescape(value)
		odd := strings.ContainsAny(name, `"(),/:;<=>?@[\]{}`) || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
		if strings.TrimSpace(header) != "" && (!found || name == "" || odd || err != nil) {
			return false
		}
	}
	return true
}

// secretsOf are what of the collector's address and headers no text may show.
func secretsOf(getenv func(string) string) []string {
	var secrets []string
	for _, kind := range []string{"", "TRACES_"} {
		for header := range strings.SplitSeq(getenv("OTEL_EXPORTER_OTLP_"+kind+"HEADERS"), ",") {
			_, value, _ := strings.Cut(header, "=")
			value = strings.TrimSpace(value)
			secrets = append(secrets, value)
			if plain, err := url.PathUnescape(value); err == nil {
				secrets = append(secrets, plain)
			}
		}
		if u, err := url.Parse(getenv("OTEL_EXPORTER_OTLP_" + kind + "ENDPOINT")); err == nil && u.User != nil {
			password, _ := u.User.Password()
			secrets = append(secrets, password)
		}
	}
	return secrets
}
