package inflight

// Key names what a job works on: one job a key runs at once.
type Key struct{ kind, name string }

// Request is the key of work on a request.
func Request(id string) Key { return Key{"request", id} }

// RequestLock is the key of waiting for the end of a lock that another launcher holds on a request.
func RequestLock(id string) Key { return Key{"request lock", id} }

// Node is the key of work on a node that belongs to no request of ours.
func Node(id string) Key { return Key{"node", id} }

// Mark is the key of marking an upload, by its path, as suspect or not.
func Mark(upload string) Key { return Key{"suspect", upload} }

// Task is the key of what a session does now and then, by its name.
func Task(name string) Key { return Key{"task", name} }
