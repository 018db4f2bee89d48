package providers

import "fmt"

// Connection is what Zuul needs to reach a node that is a namespace or a pod of a cluster.
// The record of the node has it instead of a port.
type Connection struct {
	Type      string // namespace or kubectl: connection_type of the record
	Name      string // of the namespace that is the node's own; "" where there is none
	Namespace string
	Pod       string // "" when the node is the whole namespace
	Host      string // the address of the API server, with its scheme
	SkipTLS   bool   // the certificate of the API server is not verified
	CACert    string // that signs it: PEM in base64; "" is unknown
	User      string
	Token     string `json:"-"` // secret: for Zuul only, in no message, event or listing
}

// String names what it leads to, without the token.
func (c Connection) String() string {
	return fmt.Sprintf("%s %s%s of %s as %s", c.Type, c.Namespace, slashed(c.Pod), c.Host, c.User)
}

// GoString is String: %#v would show the token.
func (c Connection) GoString() string { return c.String() }

func slashed(pod string) string {
	if pod == "" {
		return ""
	}
	return "/" + pod
}

// Data is the object that Zuul reads, the token with it.
func (c *Connection) Data() map[string]any {
	data := map[string]any{
		"namespace": c.Namespace, "host": c.Host, "skiptls": c.SkipTLS, "token": c.Token, "user": c.User,
	}
	for key, value := range map[string]string{"name": c.Name, "pod": c.Pod, "ca_crt": c.CACert} {
		if value != "" {
			data[key] = value
		}
	}
	return data
}
