package openstack

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"poolkeeper/providers"
)

// key finds the configuration key that a refusal of Nova's is about.
func (o offer) key(message string) string {
	for name := range o.label.InstanceProperties { // Nova names the key of the metadata
		if strings.Contains(message, "attribute "+name+".") {
			return "instance-properties"
		}
	}
	m := strings.ToLower(message)
	for _, sign := range []struct{ word, key string }{
		{"flavor", "flavor-name"}, // before image: "flavor's disk is too small for the image"
		{"key_name", "key-name"},
		{"keypair", "key-name"},
		{"key pair", "key-name"},
		{"security group", "security-groups"},
		{"security_group", "security-groups"},
		{"availability zone", "availability-zones"},
		{"availability_zone", "availability-zones"},
		{"user_data", "userdata"},
		{"user data", "userdata"},
		{"block device", "boot-from-volume"},
		{"volume", "boot-from-volume"},
		{"network", "networks"},
		{"subnet", "networks"},
		{"port", "networks"},
		{"metadata", "instance-properties"},
		{"image", o.imageKey()},
	} {
		if strings.Contains(m, sign.word) {
			return sign.key
		}
	}
	return ""
}

func (o offer) imageKey() string {
	if o.label.CloudImage != "" {
		return "cloud-image"
	}
	return "diskimage"
}

// imageGone tells the refusals of an image that is no longer there, or not yet.
func imageGone(message string) bool {
	m := strings.ToLower(message)
	return strings.Contains(m, "find requested image") || strings.Contains(m, "imageref") ||
		strings.Contains(m, "image") && (strings.Contains(m, "not be found") ||
			strings.Contains(m, "not active") || strings.Contains(m, "not found"))
}

// refused says of a create that Nova refused which key of the configuration is
// wrong, and drops what we believed about the cloud: it may be out of date.
func (p *Provider) refused(o offer, err error) error {
	e := (*cloudError)(nil)
	if !errors.As(err, &e) || e.status < 400 || e.status >= 500 {
		return err
	}
	if errors.Is(err, providers.ErrQuota) {
		p.gate.full()
		return fmt.Errorf("%s: %w", o, err)
	}
	if errors.Is(err, providers.ErrTransient) && e.status != http.StatusConflict {
		return err
	}
	p.forget()
	key := o.key(e.message)
	switch {
	case key == o.imageKey() && imageGone(e.message):
		e.kind = providers.ErrNotFound
		if o.label.CloudImage != "" {
			e.kind = providers.ErrInvalid
		}
	case key != "":
		e.kind = providers.ErrInvalid
	}
	if key == "" {
		return fmt.Errorf("%s: %w", o, err)
	}
	return fmt.Errorf("%s: %s: %w", o, key, err)
}

// forget drops what is remembered of the cloud.
func (p *Provider) forget() {
	p.flavors.forget()
	p.networks.forget()
	p.paths.forget()
	p.groups.forget()
	p.zones.forget()
	p.images.forget()
}
