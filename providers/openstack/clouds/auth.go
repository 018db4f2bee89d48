package clouds

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
)

// defaultDomain is where users and projects are that name no domain.
const defaultDomain = "default"

// AuthOptions are what the identity service is asked with: a password, a
// one-time passcode, a token, or an application credential.
//
// Errors: ErrIncomplete for another kind, or when something is missing.
func (c Cloud) AuthOptions() (gophercloud.AuthOptions, error) {
	a := c.Auth
	options := gophercloud.AuthOptions{IdentityEndpoint: a.URL}
	if a.AppCredID != "" || a.AppCredName != "" {
		// Its scope is part of the credential.
		options.ApplicationCredentialID = a.AppCredID
		options.ApplicationCredentialName = a.AppCredName
		options.ApplicationCredentialSecret = a.AppCredSecret
		if a.AppCredID == "" {
			c.identify(&options)
		}
		return options, c.check(a.AppCredSecret, "application_credential_secret")
	}
	if err := c.checkType(); err != nil {
		return options, err
	}
	options.TenantID = cmp.Or(a.ProjectID, a.TenantID)
	options.TenantName = cmp.Or(a.ProjectName, a.TenantName)
	options.Scope = c.scope(options)
	if a.Token != "" && a.Password == "" {
		options.TokenID = a.Token
		return options, nil
	}
	options.Password, options.Passcode = a.Password, a.Passcode
	c.identify(&options)
	if err := c.check(cmp.Or(a.Username, a.UserID), "username"); err != nil {
		return options, err
	}
	return options, c.check(a.Password+a.Passcode, "password")
}

func (c Cloud) check(value, key string) error {
	if value == "" {
		return fmt.Errorf("read cloud %s from %s: %w: %s is missing", c.Name, c.Source, ErrIncomplete, key)
	}
	return nil
}

// authTypes are the kinds that the library can speak, for people.
const authTypes = "password, token, v3totp, v3multifactor and v3applicationcredential"

// checkType refuses the kinds that the library cannot speak.
func (c Cloud) checkType() error {
	switch strings.TrimPrefix(strings.TrimPrefix(c.AuthType, "v3"), "v2") {
	case "", "password", "token", "totp", "multifactor":
		return nil
	case "applicationcredential":
		return c.check("", "application_credential_id")
	}
	return fmt.Errorf("read cloud %s from %s: %w: auth_type %s is not supported; supported are %s", c.Name, c.Source, ErrIncomplete, c.AuthType, authTypes)
}

// identify says who the user is. A user's id is enough by itself.
func (c Cloud) identify(options *gophercloud.AuthOptions) {
	a := c.Auth
	if a.UserID != "" {
		options.UserID = a.UserID
		return
	}
	options.Username = a.Username
	options.DomainID, options.DomainName = domain(a, a.UserDomainID, a.UserDomainName)
}

// scope says what the token shall be for.
func (c Cloud) scope(options gophercloud.AuthOptions) *gophercloud.AuthScope {
	a := c.Auth
	switch {
	case a.TrustID != "":
		return &gophercloud.AuthScope{TrustID: a.TrustID}
	case a.SystemScope != "":
		return &gophercloud.AuthScope{System: true}
	case options.TenantID != "":
		return &gophercloud.AuthScope{ProjectID: options.TenantID}
	case options.TenantName != "":
		id, name := domain(a, a.ProjectDomainID, a.ProjectDomainName)
		return &gophercloud.AuthScope{ProjectName: options.TenantName, DomainID: id, DomainName: name}
	case a.DomainID != "":
		return &gophercloud.AuthScope{DomainID: a.DomainID}
	case a.DomainName != "":
		return &gophercloud.AuthScope{DomainName: a.DomainName}
	}
	return nil
}

// domain chooses the id or the name of a domain, never both: the one given for
// the user or project itself, the entry's, the default.
func domain(a Auth, id, name string) (string, string) {
	switch {
	case id != "":
		return id, ""
	case name != "":
		return "", name
	case a.DomainID != "":
		return a.DomainID, ""
	case a.DomainName != "":
		return "", a.DomainName
	}
	return cmp.Or(a.DefaultDomain, defaultDomain), ""
}

// EndpointOpts says which of a service's endpoints to use.
func (c Cloud) EndpointOpts() gophercloud.EndpointOpts {
	options := gophercloud.EndpointOpts{Region: c.Region, Availability: gophercloud.AvailabilityPublic}
	switch strings.TrimSuffix(cmp.Or(c.EndpointType, c.Interface), "URL") {
	case "internal":
		options.Availability = gophercloud.AvailabilityInternal
	case "admin":
		options.Availability = gophercloud.AvailabilityAdmin
	}
	return options
}

// TLS is how the cloud's certificates are checked, and with which we answer.
//
// Errors: ErrIncomplete for a file without certificates, or the file system's.
func (c Cloud) TLS() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.Verify.Off {
		config.InsecureSkipVerify = true // the operator says so
	}
	if c.CACert != "" {
		pem, err := os.ReadFile(c.CACert)
		if err != nil {
			return nil, fmt.Errorf("read cacert of cloud %s: %w", c.Name, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read cacert of cloud %s: %w: %s holds no certificate", c.Name, ErrIncomplete, c.CACert)
		}
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, cmp.Or(c.Key, c.Cert))
		if err != nil {
			return nil, fmt.Errorf("read cert and key of cloud %s: %w", c.Name, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
