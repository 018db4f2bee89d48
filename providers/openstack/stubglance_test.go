package openstack

import (
	"crypto/md5"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
)

// stubImage is an image in the stub's Glance.
type stubImage struct {
	fields map[string]any // as they are listed
	data   []byte
	staged []byte
}

func (s *stub) glance() {
	s.mux.HandleFunc("POST /image/v2/images", s.createImage)
	s.mux.HandleFunc("GET /image/v2/images", s.listImages)
	s.mux.HandleFunc("GET /image/v2/images/{id}", s.image(func(w http.ResponseWriter, _ *http.Request, i *stubImage) {
		reply(w, http.StatusOK, i.fields)
	}))
	s.mux.HandleFunc("DELETE /image/v2/images/{id}", s.image(func(w http.ResponseWriter, r *http.Request, _ *stubImage) {
		delete(s.images, r.PathValue("id"))
		w.WriteHeader(http.StatusNoContent)
	}))
	s.mux.HandleFunc("PUT /image/v2/images/{id}/{how}", s.takeData)
	s.mux.HandleFunc("POST /image/v2/images/{id}/import", s.image(s.importImage))
	s.mux.HandleFunc("GET /image/v2/info/import", func(w http.ResponseWriter, _ *http.Request) {
		if s.noImport {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		reply(w, http.StatusOK, map[string]any{"import-methods": map[string]any{"value": []string{"glance-direct", "web-download"}}})
	})
}

// image wraps what is done with an image that exists, under the lock.
func (s *stub) image(do func(http.ResponseWriter, *http.Request, *stubImage)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if i, ok := s.images[r.PathValue("id")]; ok {
			do(w, r, i)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<html><head><title>404 Not Found</title></head><body><h1>404 Not Found</h1>No image found<br /></body></html>")
	}
}

func (s *stub) createImage(w http.ResponseWriter, r *http.Request) {
	fields := map[string]any{}
	if json.NewDecoder(r.Body).Decode(&fields) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id, _ := fields["id"].(string)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.images[id]; there {
		reply(w, http.StatusConflict, map[string]any{"message": "Image ID " + id + " already exists!"})
		return
	}
	fields["status"], fields["size"], fields["created_at"] = "queued", nil, "2026-01-01T00:00:00Z"
	s.images[id] = &stubImage{fields: fields}
	reply(w, http.StatusCreated, fields)
}

func (s *stub) listImages(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(s.images)) {
		fields := s.images[id].fields
		fits := id > query.Get("marker")
		for _, key := range []string{"nodepool_provider_name", "name", "status"} {
			fits = fits && (!query.Has(key) || fields[key] == query.Get(key))
		}
		if fits {
			list = append(list, fields)
		}
	}
	body := map[string]any{"images": list}
	if len(list) > s.page {
		query.Set("marker", list[s.page-1]["id"].(string))
		body["images"], body["next"] = list[:s.page], "/v2/images?"+query.Encode()
	}
	reply(w, http.StatusOK, body)
}

// takeData reads the data of an upload. Data that is cut short leaves the image
// as it was.
func (s *stub) takeData(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.image(func(w http.ResponseWriter, r *http.Request, i *stubImage) {
		i.fields["content-length"] = strconv.FormatInt(r.ContentLength, 10) // told by tests
		if r.PathValue("how") == "stage" {
			i.staged, i.fields["status"] = data, "uploading"
		} else {
			i.store(data)
		}
		w.WriteHeader(http.StatusNoContent)
	})(w, r)
}

func (i *stubImage) store(data []byte) {
	sum, long := md5.Sum(data), sha512.Sum512(data)
	i.data = data
	i.fields["status"], i.fields["size"], i.fields["checksum"] = "active", len(data), hex.EncodeToString(sum[:])
	i.fields["os_hash_algo"], i.fields["os_hash_value"] = "sha512", hex.EncodeToString(long[:])
}

func (s *stub) importImage(w http.ResponseWriter, r *http.Request, i *stubImage) {
	var body struct{ Method struct{ Name, URI string } }
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	i.fields["imported"] = body.Method.Name + " " + body.Method.URI
	if body.Method.Name == "glance-direct" {
		i.store(i.staged)
	} else {
		i.fields["os_glance_failed_import"] = "store"
	}
	w.WriteHeader(http.StatusAccepted)
}
