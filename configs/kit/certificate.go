package kit

import (
	"crypto/x509"
	"encoding/pem"
	"time"
)

// CertificatesEnd is when the first certificate of a file of PEM blocks ends. Of a bundle, in
// which some may have ended, it is the last: what is trusted ends with that one. There is
// false where the file has no certificate.
func CertificatesEnd(file []byte, bundle bool) (end time.Time, there bool) {
	for block, rest := pem.Decode(file); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil {
			continue
		}
		if !there || certificate.NotAfter.Before(end) != bundle {
			end, there = certificate.NotAfter, true
		}
	}
	return end, there
}
