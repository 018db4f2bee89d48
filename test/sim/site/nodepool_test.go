package site

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"poolkeeper/providers"
	"poolkeeper/test/sim/stage"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// nodepool is another make's launcher on the same tree, for a while: one pool, with records as Nodepool writes them and
// machines that carry no mark of ours.
type nodepool struct {
	*recipe.Session
	world     *world
	rng       *rand.Rand
	name, id  string
	cloud     string
	labels    []string
	priority  int
	ends      string            // what becomes of requests that it accepts
	intention map[string]string // by request
}

// endings are what becomes of what it accepts.
var endings = []string{"fulfils", "fails", "dies when it has accepted", "dies with a new record", "dies with a new machine", "dies with a ready node"}

// isOther reports whether a client is another make's launcher.
func isOther(client string) bool { return strings.HasPrefix(client, "n") }

// nodepool has one live, beside a node in some state that it leaves.
func (w *world) nodepool() {
	rng := rand.New(rand.NewPCG(w.rng.Uint64(), 0)) //nolint:gosec // it has to repeat
	name, cloud, d := fmt.Sprint("n", w.rng.Uint32()), w.someCloud(), 4*w.while()
	n := &nodepool{
		world: w, rng: rng, name: name, id: name + "-PoolWorker." + cloud + "-main-0", cloud: cloud,
		labels: [][]string{{"large"}, {"small", "large"}, {"small", "rare", "cloudy"}}[rng.IntN(3)], priority: []int{100, 100, 50}[rng.IntN(3)],
		ends: endings[rng.IntN(len(endings))], intention: map[string]string{},
	}
	left := []string{"building", "used", "ready"}[rng.IntN(3)]
	w.judge.Fault("nodepool", name, "in %s with %v for %s, which %s and leaves a node that is %s", cloud, n.labels, d, n.ends, left)
	w.others.Go(func() {
		client, err := recipe.Dial(recipe.Config{Servers: w.cluster.Addrs(), Timeout: sessionTimeout, MaxPacket: stage.MaxPacket, Dial: w.cluster.Dialer(name)})
		if err != nil {
			w.judge.Wrong(name, "%v", err)
			return
		}
		defer client.Close() // and all its locks go
		if n.Session, err = client.Session(w.t.Context()); err == nil {
			err = errors.Join(n.register(), n.leave(left))
		}
		if err == nil {
			err = n.serve(d)
		}
		w.judge.Note(name, "ends: %v", err) // a server went, or it dies as is its part
	})
}

// register has it be seen.
func (n *nodepool) register() error {
	pool, err := json.Marshal(map[string]any{
		"hostname": n.name, "id": n.id, "kind": "pool", "model_api": 0, "name": "main", "paused": false, "priority": n.priority,
		"provider_name": n.cloud, "state": "running", "supported_labels": n.labels, "version": "11.0.0",
	})
	if err == nil {
		err = n.EnsurePath(n.Context(), zkmodel.ComponentsRoot+"/pool")
	}
	if err == nil {
		_, err = n.Create(n.Context(), zkmodel.ComponentsRoot+"/pool/"+n.name, pool, recipe.Ephemeral|recipe.Sequential)
	}
	return err
}

// leave makes a node of before, which nobody looks after.
func (n *nodepool) leave(state string) error {
	first := state
	if state == "ready" {
		first = "building"
	}
	r, err := n.newNode(n.labels[0], nil, first)
	var lock *recipe.Held
	if err == nil && first == "building" {
		lock, err = recipe.NewLock(n.Session, zkmodel.LockPath(r.path), n.name).Try(n.Context())
	}
	if err != nil {
		return err
	}
	machine := n.machine(r)
	if state == "building" {
		return nil // it dies before it says so
	}
	r.keys["external_id"] = machine
	if state == first {
		return n.write(r, nodeKeys)
	}
	r.move(state)
	return errors.Join(n.write(r, nodeKeys), lock.Release(n.Context()))
}

// nodeKeys and requestKeys are what Nodepool knows of records. What else there is goes when it writes.
var (
	nodeKeys = strings.Fields(`state state_time cloud provider pool type allocated_to az region public_ipv4 private_ipv4 public_ipv6 host_id
		interface_ip connection_port ssh_port image_id launcher created_time external_id hostname comment user_data hold_job host_keys username
		connection_type shell_type hold_expiration resources slot attributes python_path tenant_name driver_data requestor`)
	requestKeys = strings.Fields(`state state_time declined_by node_types nodes reuse requestor requestor_data provider relative_priority
		event_id created_time tenant_name`)
)

// record is a record as it reads and writes it.
type record struct {
	path    string
	keys    map[string]any
	version int32
}

func (r *record) text(key string) string { s, _ := r.keys[key].(string); return s }

func (r *record) texts(key string) (list []string) {
	all, _ := r.keys[key].([]any)
	for _, one := range all {
		if s, is := one.(string); is {
			list = append(list, s)
		}
	}
	return list
}

func (r *record) move(state string) {
	r.keys["state"], r.keys["state_time"] = state, float64(time.Now().UnixMilli())/1000
}

// read is a record; one that is gone, or that it cannot read, is nil.
func (n *nodepool) read(p string) (*record, error) {
	data, stat, err := n.Get(n.Context(), p)
	if errors.Is(err, recipe.ErrNoNode) {
		return nil, nil //nolint:nilnil // it is nothing to it
	}
	r := &record{path: p, version: stat.Version}
	if err != nil || json.Unmarshal(data, &r.keys) != nil || r.text("state") == "" {
		return nil, err
	}
	return r, nil
}

func (n *nodepool) write(r *record, known []string) error {
	keys := maps.Clone(r.keys)
	maps.DeleteFunc(keys, func(key string, _ any) bool { return !slices.Contains(known, key) })
	data, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	stat, err := n.Set(n.Context(), r.path, data, r.version)
	r.version = stat.Version
	return err
}

// newNode makes the record of a node, for a request or for none.
func (n *nodepool) newNode(label string, request *record, state string) (*record, error) {
	r := &record{keys: map[string]any{
		"provider": n.cloud, "pool": "main", "type": []string{label}, "launcher": n.id, "external_id": nil, "cloud": "cloud",
		"resources": map[string]int{"instances": 1, "cores": 4, "ram": 8192}, "username": "zuul", "connection_port": 22, "hold_expiration": nil, "allocated_to": nil,
	}}
	r.move(state)
	r.keys["created_time"] = r.keys["state_time"]
	if request != nil {
		r.keys["allocated_to"], r.keys["tenant_name"], r.keys["requestor"] = path.Base(request.path), request.keys["tenant_name"], request.keys["requestor"]
	}
	data, err := json.Marshal(r.keys)
	if err == nil {
		r.path, err = n.Create(n.Context(), zkmodel.NodesRoot+"/", data, recipe.Sequential)
	}
	return r, err
}

// machine makes a node's machine, and is its id.
func (n *nodepool) machine(r *record) string {
	return n.world.clouds.PlantNode(n.cloud, n.name, map[string]string{
		providers.MetaProvider: n.cloud, providers.MetaNode: path.Base(r.path), providers.MetaPool: "main",
	})
}
