package site

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"poolkeeper/providers"
	"poolkeeper/test/sim/stage"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// nodepool is another make's launcher on the same tree, for a while: it registers a pool, has a node
// that carries no mark of ours, as Nodepool's do, and dies as it launches it. Ours clean up.
func (w *world) nodepool() {
	name, cloud, d := fmt.Sprint("n", w.rng.Uint32()), names[w.rng.IntN(len(names))], 2*w.while()
	state := []string{"building", "used", "ready"}[w.rng.IntN(3)]
	w.judge.Fault("nodepool", name, "in %s for %s, with a node that is %s", cloud, d, state)
	w.others.Go(func() {
		client, err := recipe.Dial(recipe.Config{Servers: w.cluster.Addrs(), Timeout: sessionTimeout, MaxPacket: stage.MaxPacket, Dial: w.cluster.Dialer(name)})
		if err != nil {
			w.judge.Wrong(name, "%v", err)
			return
		}
		defer client.Close()
		s, err := client.Session(w.t.Context())
		if err == nil {
			err = w.live(s, name, cloud, state)
		}
		if err != nil {
			w.judge.Note(name, "ends early: %v", err) // a server went
			return
		}
		wait(d)
	})
}

// live is what a Nodepool writes.
func (w *world) live(s *recipe.Session, name, cloud, state string) error {
	ctx := w.t.Context()
	id := name + "-PoolWorker." + cloud + "-main-0"
	pool, err1 := json.Marshal(map[string]any{
		"hostname": name, "id": id, "kind": "pool", "model_api": 0, "name": "main", "priority": 100,
		"provider_name": cloud, "state": "running", "supported_labels": []string{"large"}, "version": "11.0.0",
	})
	now := float64(time.Now().UnixMilli()) / 1000
	node, err2 := json.Marshal(map[string]any{
		"state": state, "state_time": now, "created_time": now, "provider": cloud, "pool": "main", "type": []string{"large"},
		"launcher": id, "external_id": nil, "resources": map[string]int{"instances": 1, "cores": 4, "ram": 8192}, "cloud": "cloud",
		"username": "zuul", "connection_port": 22, "hold_expiration": nil, "allocated_to": nil,
	})
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if err := s.EnsurePath(ctx, zkmodel.ComponentsRoot+"/pool"); err != nil {
		return err
	}
	if _, err := s.Create(ctx, zkmodel.ComponentsRoot+"/pool/"+name, pool, recipe.Ephemeral|recipe.Sequential); err != nil {
		return err
	}
	made, err := s.Create(ctx, zkmodel.NodesRoot+"/", node, recipe.Sequential)
	if err != nil {
		return err
	}
	if state == "building" {
		if _, err := recipe.NewLock(s, zkmodel.LockPath(made), name).Try(ctx); err != nil {
			return err
		}
	}
	w.clouds.PlantNode(cloud, name, map[string]string{
		providers.MetaProvider: cloud, providers.MetaNode: path.Base(made), providers.MetaPool: "main",
	})
	return nil
}
