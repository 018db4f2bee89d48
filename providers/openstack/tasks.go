package openstack

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"poolkeeper/configs/statsd"
)

// slowTask is the time above which openstacksdk counts a call as slow.
const slowTask = time.Second

// reportTask sends to statsd how a call ended, under the keys of openstacksdk: it counts and times
// nodepool.task.PROVIDER.SERVICE.METHOD.OPERATION.STATUS, and counts the calls that were attempted, failed or slow. Calls to the
// identity service are not reported, as openstacksdk reports none of its log-ins.
func (p *Provider) reportTask(s *session, req *http.Request, resp *http.Response, took time.Duration, err error) {
	if !p.statsd.On() {
		return
	}
	service, path := s.serviceOf(req.URL)
	if service == "" {
		return
	}
	key := strings.Join([]string{"nodepool.task", p.cfg.Name, service, req.Method, operation(path)}, ".")
	if err != nil || resp == nil {
		p.statsd.Count(key, "failed")
	} else {
		status := strconv.Itoa(resp.StatusCode)
		p.statsd.Timing(took, key, status)
		p.statsd.Count(key, status)
		if took > slowTask {
			p.statsd.Count(key, "over_1000")
		}
	}
	p.statsd.Count(key, "attempted")
}

// serviceOf returns the service that a URL is of, and the path below its endpoint; "" is the identity service, or none.
func (s *session) serviceOf(u *url.URL) (service, path string) {
	longest := -1
	for name, client := range map[string]*gophercloud.ServiceClient{
		"compute": s.compute, "image": s.image, "network": s.network, "block-storage": s.volume,
	} {
		if client == nil {
			continue
		}
		base, err := url.Parse(client.Endpoint)
		if err != nil || base.Host != u.Host || len(base.Path) <= longest {
			continue
		}
		if below, ok := strings.CutPrefix(u.Path, base.Path); ok {
			longest, service, path = len(base.Path), name, below
		}
	}
	return service, path
}

// operation names what a call is about as openstacksdk does, by the words of its path without ids: servers, servers_detail,
// server_action. A list has the plural.
func operation(path string) string {
	parts := strings.FieldsFunc(strings.TrimSuffix(path, ".json"), func(r rune) bool { return r == '/' })
	if len(parts) > 0 && len(parts[0]) > 1 && parts[0][0] == 'v' && parts[0][1] >= '0' && parts[0][1] <= '9' {
		parts = parts[1:]
	}
	if len(parts) == 0 {
		return "discovery"
	}
	if parts[len(parts)-1] == "detail" {
		return statsd.Part(strings.Join(parts[max(len(parts)-2, 0):], "_"))
	}
	var words []string
	for i := 0; i < len(parts); i += 2 {
		word := parts[i]
		if i+1 < len(parts) && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "is") {
			word = strings.TrimSuffix(word, "s")
		}
		words = append(words, word)
	}
	return statsd.Part(strings.Join(words, "_"))
}
