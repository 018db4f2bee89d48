package providers

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
)

// Untrusted returns err as the error of a certificate that is not trusted: it names the host, if err does, and the setting that
// names the authority. It returns nil if err has another cause.
func Untrusted(err error, setting string) error {
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); !untrusted {
		return nil
	}
	whose := "the service"
	if call, ok := errors.AsType[*url.Error](err); ok {
		if at, parsed := url.Parse(call.URL); parsed == nil {
			whose = at.Host
		}
	}
	return fmt.Errorf("%w: the certificate of %s is not trusted, name its authority with %s: %w", ErrUnusable, whose, setting, err)
}
