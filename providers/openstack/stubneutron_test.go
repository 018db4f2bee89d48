package openstack

import (
	"encoding/json"
	"net/http"
)

// stubIP is a floating IP in the stub's Neutron.
type stubIP struct {
	ID          string `json:"id"`
	IP          string `json:"floating_ip_address"`
	Port        string `json:"port_id"`
	Description string `json:"description"`
	Network     string `json:"floating_network_id"`
	Fixed       string `json:"fixed_ip_address"`
}

func (s *stub) neutron() {
	s.mux.HandleFunc("GET /network/v2.0/networks", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		reply(w, http.StatusOK, map[string]any{"networks": s.networks})
	})
	for name, list := range map[string]*[]map[string]any{"subnets": &s.subnets, "routers": &s.routers} {
		s.mux.HandleFunc("GET /network/v2.0/"+name, func(w http.ResponseWriter, _ *http.Request) {
			s.mu.Lock()
			defer s.mu.Unlock()
			reply(w, http.StatusOK, map[string]any{name: append([]map[string]any{}, *list...)})
		})
	}
	s.mux.HandleFunc("GET /network/v2.0/ports", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		list := []map[string]any{}
		for _, port := range s.ports {
			fits := true
			for _, key := range []string{"device_id", "status", "name", "network_id"} {
				fits = fits && (!r.URL.Query().Has(key) || port[key] == r.URL.Query().Get(key))
			}
			if fits {
				list = append(list, port)
			}
		}
		reply(w, http.StatusOK, map[string]any{"ports": list})
	})
	s.mux.HandleFunc("POST /network/v2.0/ports", s.createPort)
	s.mux.HandleFunc("GET /network/v2.0/ports/{id}", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if port := s.ports[r.PathValue("id")]; port != nil {
			reply(w, http.StatusOK, map[string]any{"port": port})
			return
		}
		w.WriteHeader(http.StatusNotFound)
	})
	s.mux.HandleFunc("DELETE /network/v2.0/ports/{id}", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.ports, r.PathValue("id"))
		for _, ip := range s.ips {
			if ip.Port == r.PathValue("id") {
				ip.Port = ""
			}
		}
		w.WriteHeader(http.StatusNoContent)
	})
	s.mux.HandleFunc("GET /network/v2.0/floatingips", s.listIPs)
	s.mux.HandleFunc("POST /network/v2.0/floatingips", s.createIP)
	s.mux.HandleFunc("DELETE /network/v2.0/floatingips/{id}", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.ips, r.PathValue("id"))
		w.WriteHeader(http.StatusNoContent)
	})
}

func (s *stub) listIPs(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	query, list := r.URL.Query(), []*stubIP{}
	for _, ip := range s.ips {
		if (!query.Has("port_id") || ip.Port == query.Get("port_id")) &&
			(!query.Has("floating_ip_address") || ip.IP == query.Get("floating_ip_address")) {
			list = append(list, ip)
		}
	}
	reply(w, http.StatusOK, map[string]any{"floatingips": list})
}

// createIP makes a floating IP, of which Nova hears at once.
func (s *stub) createIP(w http.ResponseWriter, r *http.Request) {
	var body struct{ FloatingIP stubIP }
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unrouted || !s.routed(s.ports[body.FloatingIP.Port]["network_id"], body.FloatingIP.Network) {
		reply(w, http.StatusNotFound, map[string]any{"NeutronError": map[string]any{
			"type": "ExternalGatewayForFloatingIPNotFound", "detail": "", "message": "External network " + body.FloatingIP.Network +
				" is not reachable from subnet s.  Therefore, cannot associate Port " + body.FloatingIP.Port + " with a Floating IP.",
		}})
		return
	}
	if len(s.ips) >= s.free {
		reply(w, http.StatusBadRequest, map[string]any{"NeutronError": map[string]any{
			"type": "ExternalIpAddressExhausted", "detail": "", "message": "Unable to find any IP address on external network " + body.FloatingIP.Network + ".",
		}})
		return
	}
	ip := body.FloatingIP
	ip.ID, ip.IP = newUUID(), "203.0.113.9"
	s.ips[ip.ID] = &ip
	device, _ := s.ports[ip.Port]["device_id"].(string)
	if v, ok := s.servers[device]; ok {
		for name, list := range v.fields["addresses"].(map[string]any) {
			for _, fixed := range list.([]map[string]any) {
				if fixed["addr"] == ip.Fixed {
					v.fields["addresses"].(map[string]any)[name] = append(list.([]map[string]any), map[string]any{
						"addr": ip.IP, "version": 4, "OS-EXT-IPS:type": "floating", "OS-EXT-IPS-MAC:mac_addr": fixed["OS-EXT-IPS-MAC:mac_addr"],
					})
				}
			}
		}
	}
	reply(w, http.StatusCreated, map[string]any{"floatingip": ip})
}

// routed reports whether a router leads from one network to another. A stub without routers
// has one between all.
func (s *stub) routed(inside any, outside string) bool {
	for _, port := range s.ports {
		for _, router := range s.routers {
			gateway, _ := router["external_gateway_info"].(map[string]any)
			if port["device_id"] == router["id"] && port["network_id"] == inside && gateway["network_id"] == outside {
				return true
			}
		}
	}
	return len(s.routers) == 0
}

// createPort makes a port that no server has yet.
func (s *stub) createPort(w http.ResponseWriter, r *http.Request) {
	var body struct{ Port map[string]any }
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	port := body.Port
	port["id"], port["device_id"], port["status"] = newUUID(), "", "DOWN"
	port["fixed_ips"] = []map[string]any{}
	if !s.deferred {
		port["fixed_ips"] = []map[string]any{{"ip_address": "10.0.0.8", "subnet_id": "inside"}}
	}
	s.ports[port["id"].(string)] = port
	reply(w, http.StatusCreated, map[string]any{"port": port})
}

// bind gives a server the ports that it was ordered with, as Nova does.
func (s *stub) bind(v *stubServer) {
	wanted, _ := v.order["networks"].([]any)
	for _, one := range wanted {
		id, _ := one.(map[string]any)["port"].(string)
		port := s.ports[id]
		if port == nil {
			continue
		}
		port["device_id"], port["device_owner"], port["status"] = v.fields["id"], "compute:az1", "ACTIVE"
		list := []map[string]any{{"addr": "10.0.0.8", "version": 4, "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": "m"}}
		for _, ip := range s.ips {
			if ip.Port == id {
				list = append(list, map[string]any{"addr": ip.IP, "version": 4, "OS-EXT-IPS:type": "floating", "OS-EXT-IPS-MAC:mac_addr": "m"})
			}
		}
		v.fields["addresses"] = map[string]any{"public": list}
	}
}

// unbind frees the ports of a server that were not created by Nova.
func (s *stub) unbind(server string) {
	for id, port := range s.ports {
		if port["device_id"] != server {
			continue
		}
		if port["description"] == nil {
			delete(s.ports, id)
			continue
		}
		port["device_id"], port["device_owner"], port["status"] = "", "", "DOWN"
	}
}
