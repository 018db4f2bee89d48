package zktest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA is a certificate authority for one test.
type CA struct {
	// CertFile is its certificate in PEM.
	CertFile string

	tb   testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes a certificate authority in a folder of the test.
func NewCA(tb testing.TB) *CA {
	tb.Helper()
	ca := &CA{tb: tb, dir: tb.TempDir()}
	template := ca.template("zktest CA")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	ca.cert, ca.key = template, ca.newKey()
	der := ca.sign(template, ca.key)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatalf("parse CA: %v", err)
	}
	ca.cert = cert
	ca.CertFile = filepath.Join(ca.dir, "ca.pem")
	ca.write(ca.CertFile, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	return ca
}

// Issue makes a certificate for name, which is its host name too, and returns
// the PEM files of certificate and key.
func (ca *CA) Issue(name string) (certFile, keyFile string) {
	ca.tb.Helper()
	cert, key := ca.issue(name)
	certFile, keyFile = filepath.Join(ca.dir, name+".pem"), filepath.Join(ca.dir, name+".key")
	ca.write(certFile, cert)
	ca.write(keyFile, key)
	return certFile, keyFile
}

func (ca *CA) issue(name string) (cert, key *pem.Block) {
	ca.tb.Helper()
	template := ca.template(name)
	template.DNSNames = []string{name}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	own := ca.newKey()
	der := ca.sign(template, own)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		ca.tb.Fatalf("encode key: %v", err)
	}
	return &pem.Block{Type: "CERTIFICATE", Bytes: der}, &pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}
}

// serverConfig returns the lines of zoo.cfg that open a TLS port. The server
// wants key and certificate in one file.
func (ca *CA) serverConfig(dir string, port int) []string {
	ca.tb.Helper()
	cert, key := ca.issue("zookeeper.example")
	store := filepath.Join(dir, "server.pem")
	ca.write(store, key, cert)
	return []string{
		fmt.Sprintf("secureClientPort=%d", port),
		"secureClientPortAddress=127.0.0.1",
		"ssl.keyStore.location=" + store,
		"ssl.trustStore.location=" + ca.CertFile,
		"ssl.clientAuth=need",
	}
}

func (ca *CA) template(name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		ca.tb.Fatalf("draw serial number: %v", err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func (ca *CA) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		ca.tb.Fatalf("make key: %v", err)
	}
	return key
}

func (ca *CA) sign(template *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, &key.PublicKey, ca.key)
	if err != nil {
		ca.tb.Fatalf("sign certificate: %v", err)
	}
	return der
}

func (ca *CA) write(file string, blocks ...*pem.Block) {
	var text []byte
	for _, block := range blocks {
		text = append(text, pem.EncodeToMemory(block)...)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		ca.tb.Fatalf("write certificate: %v", err)
	}
}
