package launcher_test

import (
	"testing"

	"poolkeeper/test/zktest"
)

// asZuul is one job of a Zuul, in Python with kazoo and its lock recipe.
const asZuul = `
import json, time
from kazoo.recipe.lock import Lock

def load(path):
    data, stat = zk.get(path)
    return json.loads(data), stat

request = {"state": "requested", "state_time": time.time(), "declined_by": [], "node_types": ["small"],
           "nodes": [], "reuse": True, "requestor": "kazoo", "requestor_data": {"job_name": "j"}, "provider": None,
           "relative_priority": 0, "event_id": "e", "created_time": time.time(), "tenant_name": "t"}
path = zk.create("/nodepool/requests/200-", json.dumps(request).encode(), sequence=True, makepath=True)
event = zk.handler.event_object()

@zk.DataWatch(path)
def changed(data, stat):
    if data is None:
        return False
    if json.loads(data)["state"] in ("fulfilled", "failed"):
        event.set()

event.wait(20)
request, _ = load(path)
say(request["state"], len(request["nodes"]), request["requestor_data"]["job_name"])
node_path = "/nodepool/nodes/" + request["nodes"][0]
node, _ = load(node_path)
say(node["state"], node["allocated_to"] == path.split("/")[-1], node["host_keys"][0])
lock = Lock(zk, node_path + "/lock", "kazoo")
say(lock.acquire(timeout=30))
node, stat = load(node_path)
zk.delete(path)
for state in ("in-use", "used"):
    node["id"] = request["nodes"][0]
    node["state"] = state
    stat = zk.set(node_path, json.dumps(node).encode(), version=stat.version)
lock.release()
for _ in range(500):
    if not zk.exists(node_path):
        break
    time.sleep(0.02)
say("gone" if not zk.exists(node_path) else "still there")
`

func TestKazooAsZuul(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	s.launch()
	k := zktest.StartKazoo(t, zktest.Shared(t).Addr(), s.root, asZuul)
	k.Expect("fulfilled 1 j")
	k.Expect("ready True ssh-rsa FAKEKEY")
	k.Expect("True")
	k.Expect("gone")
	s.eventuallyEmpty()
}
