package clouds

import (
	"fmt"
	"strings"
)

// fromEnvironment reads the variables that an "openrc" file sets.
func (c *Cloud) fromEnvironment(env Env) error {
	if _, ok := env("OS_AUTH_URL"); !ok {
		return fmt.Errorf("read OS_*: %w: the provider names no cloud, and OS_AUTH_URL is not set", ErrIncomplete)
	}
	for field, variables := range map[*string][]string{
		&c.AuthType:               {"OS_AUTH_TYPE"},
		&c.Region:                 {"OS_REGION_NAME"},
		&c.Interface:              {"OS_INTERFACE", "OS_ENDPOINT_TYPE"},
		&c.CACert:                 {"OS_CACERT"},
		&c.Cert:                   {"OS_CERT"},
		&c.Key:                    {"OS_KEY"},
		&c.Auth.URL:               {"OS_AUTH_URL"},
		&c.Auth.Token:             {"OS_TOKEN", "OS_AUTH_TOKEN"},
		&c.Auth.Username:          {"OS_USERNAME"},
		&c.Auth.UserID:            {"OS_USER_ID", "OS_USERID"},
		&c.Auth.Password:          {"OS_PASSWORD"},
		&c.Auth.Passcode:          {"OS_PASSCODE"},
		&c.Auth.AppCredID:         {"OS_APPLICATION_CREDENTIAL_ID"},
		&c.Auth.AppCredName:       {"OS_APPLICATION_CREDENTIAL_NAME"},
		&c.Auth.AppCredSecret:     {"OS_APPLICATION_CREDENTIAL_SECRET"},
		&c.Auth.SystemScope:       {"OS_SYSTEM_SCOPE"},
		&c.Auth.TrustID:           {"OS_TRUST_ID"},
		&c.Auth.ProjectID:         {"OS_PROJECT_ID", "OS_TENANT_ID"},
		&c.Auth.ProjectName:       {"OS_PROJECT_NAME", "OS_TENANT_NAME"},
		&c.Auth.UserDomainID:      {"OS_USER_DOMAIN_ID"},
		&c.Auth.UserDomainName:    {"OS_USER_DOMAIN_NAME"},
		&c.Auth.ProjectDomainID:   {"OS_PROJECT_DOMAIN_ID"},
		&c.Auth.ProjectDomainName: {"OS_PROJECT_DOMAIN_NAME"},
		&c.Auth.DomainID:          {"OS_DOMAIN_ID"},
		&c.Auth.DomainName:        {"OS_DOMAIN_NAME"},
		&c.Auth.DefaultDomain:     {"OS_DEFAULT_DOMAIN"},
	} {
		for _, variable := range variables {
			if content, ok := env(variable); ok && content != "" {
				*field = content
				break
			}
		}
	}
	if insecure, ok := env("OS_INSECURE"); ok {
		c.Insecure = isTrue(insecure)
	}
	return nil
}

func isTrue(text string) bool {
	switch strings.ToLower(text) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}
