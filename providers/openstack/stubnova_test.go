package openstack

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// What the stub's project has.
const (
	netPublic  = "11111111-0000-4000-8000-000000000001"
	netPrivate = "11111111-0000-4000-8000-000000000002"
	netOutside = "11111111-0000-4000-8000-000000000003"
)

// stubServer is a server in the stub's Nova.
type stubServer struct {
	fields map[string]any // as they are listed
	ready  time.Time
	order  map[string]any // what was asked for
}

func (s *stub) nova() {
	s.mux.HandleFunc("POST /compute/v2.1/servers", s.createServer)
	s.mux.HandleFunc("GET /compute/v2.1/servers/detail", s.listServers)
	s.mux.HandleFunc("GET /compute/v2.1/servers/{id}", s.server(func(w http.ResponseWriter, _ *http.Request, v *stubServer) {
		reply(w, http.StatusOK, map[string]any{"server": v.look()})
	}))
	s.mux.HandleFunc("DELETE /compute/v2.1/servers/{id}", s.server(func(w http.ResponseWriter, r *http.Request, _ *stubServer) {
		delete(s.servers, r.PathValue("id"))
		s.unbind(r.PathValue("id"))
		delete(s.disks, r.PathValue("id")) // delete_on_termination
		w.WriteHeader(http.StatusNoContent)
	}))
	s.mux.HandleFunc("POST /compute/v2.1/servers/{id}/action", s.server(func(w http.ResponseWriter, _ *http.Request, _ *stubServer) {
		reply(w, http.StatusOK, map[string]any{"output": "one\ntwo\nthree"})
	}))
	s.mux.HandleFunc("GET /compute/v2.1/flavors/detail", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"flavors": []map[string]any{
			{"id": "3", "name": "ci.large", "ram": 8192, "vcpus": 8},
			{"id": "1", "name": "ci.small", "ram": 1024, "vcpus": 1},
			{"id": "2", "name": "ci.medium", "ram": 4096, "vcpus": 2},
			{"id": "4", "name": "gpu.small", "ram": 2048, "vcpus": 1},
		}})
	})
	s.mux.HandleFunc("GET /compute/v2.1/os-availability-zone", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"availabilityZoneInfo": []map[string]any{
			{"zoneName": "az1", "zoneState": map[string]any{"available": true}},
			{"zoneName": "az2", "zoneState": map[string]any{"available": false}},
		}})
	})
	s.mux.HandleFunc("GET /compute/v2.1/limits", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		reply(w, http.StatusOK, map[string]any{"limits": map[string]any{"absolute": map[string]any{
			"maxTotalInstances": s.quota, "maxTotalCores": -1, "maxTotalRAMSize": 1 << 20, "totalInstancesUsed": len(s.servers),
		}}})
	})
	s.mux.HandleFunc("GET /volume/v3/project/limits", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"limits": map[string]any{"absolute": s.volumes}})
	})
}

func (s *stub) server(do func(http.ResponseWriter, *http.Request, *stubServer)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if v, ok := s.servers[r.PathValue("id")]; ok {
			do(w, r, v)
			return
		}
		refuse(w, http.StatusNotFound, "itemNotFound", "Instance could not be found.")
	}
}

// refuse answers as Nova does.
func refuse(w http.ResponseWriter, status int, kind, message string) {
	reply(w, status, map[string]any{kind: map[string]any{"code": status, "message": message}})
}

// look is a server as it is listed now.
func (v *stubServer) look() map[string]any {
	if v.fields["status"] == "BUILD" && time.Now().After(v.ready) {
		v.fields["status"] = "ACTIVE"
	}
	return v.fields
}

func (s *stub) createServer(w http.ResponseWriter, r *http.Request) {
	var body struct{ Server map[string]any }
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	order := body.Server
	s.mu.Lock()
	defer s.mu.Unlock()
	image, _ := order["imageRef"].(string)
	switch i, ok := s.images[image]; {
	case image != "" && (!ok || i.fields["status"] != "active"):
		refuse(w, http.StatusBadRequest, "badRequest", "Can not find requested image")
		return
	case len(s.servers) >= s.quota:
		refuse(w, http.StatusForbidden, "forbidden",
			fmt.Sprintf("Quota exceeded for instances: Requested 1, but already used %d of %d instances", len(s.servers), s.quota))
		return
	}
	v := s.addServer(order)
	reply(w, http.StatusAccepted, map[string]any{"server": map[string]any{"id": v.fields["id"]}})
}

// addServer makes a server without asking whether it may be.
func (s *stub) addServer(order map[string]any) *stubServer {
	id := newUUID()
	v := &stubServer{
		order: order, ready: time.Now().Add(s.boot),
		fields: map[string]any{
			"id": id, "name": order["name"], "status": "BUILD", "metadata": order["metadata"],
			"created": time.Now().UTC().Format(time.RFC3339), "hostId": "host", "OS-EXT-AZ:availability_zone": order["availability_zone"],
			"flavor": map[string]any{"id": order["flavorRef"]},
			"addresses": map[string]any{"public": []map[string]any{
				{"addr": "198.51.100.7", "version": 4, "OS-EXT-IPS:type": "fixed"},
			}},
		},
	}
	s.servers[id] = v
	s.bind(v)
	s.addVolume(id, v)
	return v
}

// addVolume makes the volume that a server boots from. Cinder is asked when Nova has
// accepted the server: what it refuses is the server's fault.
func (s *stub) addVolume(id string, v *stubServer) {
	devices, _ := v.order["block_device_mapping_v2"].([]any)
	for _, d := range devices {
		device := d.(map[string]any)
		if most, limited := s.volumes["maxTotalVolumes"]; limited && len(s.disks) >= most {
			v.fields["status"] = "ERROR"
			v.fields["fault"] = map[string]any{"code": 500, "message": fmt.Sprintf("Build of instance %s aborted: VolumeLimitExceeded: "+
				"Maximum number of volumes allowed (%d) exceeded for quota 'volumes'.", id, most)}
			return
		}
		s.disks[id] = int(device["volume_size"].(float64))
	}
}

func (s *stub) listServers(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(s.servers)) {
		if id > r.URL.Query().Get("marker") {
			list = append(list, s.servers[id].look())
		}
	}
	body := map[string]any{"servers": list}
	if len(list) > s.page {
		query := r.URL.Query()
		query.Set("marker", list[s.page-1]["id"].(string))
		body["servers"] = list[:s.page]
		body["servers_links"] = []map[string]any{{"rel": "next", "href": s.URL + r.URL.Path + "?" + query.Encode()}}
	}
	reply(w, http.StatusOK, body)
}
