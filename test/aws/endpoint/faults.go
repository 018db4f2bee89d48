package endpoint

import (
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strconv"
	"time"
)

// faults are the lies that are set.
type faults struct {
	chance   *rand.Rand
	fails    []failing
	lost     map[string]int
	held     map[string]chan struct{}
	lag      time.Duration
	throttle float64
	page     int
	allowed  []string
	limited  bool
	full     map[string]bool
	keeps    bool // hosts
}

type failing struct {
	op, code string
	times    int
}

// Request is one that the model does not refuse.
type Request struct {
	Service, Operation string
	// Action is what a policy calls it.
	Action string
	In     Doc
	At     time.Time
	// Fault is the code of the error that it was answered with.
	Fault string
	open  bool
}

// Fail answers an operation with an error, so many times.
func (e *Endpoint) Fail(operation string, times int, code string) {
	e.locked(func() { e.faults.fails = append(e.faults.fails, failing{operation, code, times}) })
}

// Forgive ends what Fail has begun.
func (e *Endpoint) Forgive() { e.locked(func() { e.faults.fails = nil }) }

// LoseAnswer does what an operation asks for and cuts the connection, so many times.
func (e *Endpoint) LoseAnswer(operation string, times int) {
	e.locked(func() {
		if e.faults.lost == nil {
			e.faults.lost = map[string]int{}
		}
		e.faults.lost[operation] += times
	})
}

// HoldAnswer does what an operation asks for, each time, and keeps the answers back until release is called: who asked is stopped there.
func (e *Endpoint) HoldAnswer(operation string) (release func()) {
	held := make(chan struct{})
	e.locked(func() {
		if e.faults.held == nil {
			e.faults.held = map[string]chan struct{}{}
		}
		e.faults.held[operation] = held
	})
	return func() {
		e.locked(func() { delete(e.faults.held, operation) })
		close(held)
	}
}

// Lag is how long something new is not found, and something deleted is still listed.
func (e *Endpoint) Lag(d time.Duration) { e.locked(func() { e.faults.lag = d }) }

// Throttle refuses a share of the requests as too many, by a chance that Options.Seed decides.
func (e *Endpoint) Throttle(share float64) { e.locked(func() { e.faults.throttle = share }) }

// Pages ends each list that can be continued after n; 0 ends none that was not asked for.
func (e *Endpoint) Pages(n int) { e.locked(func() { e.faults.page = n }) }

// NoCapacity lets a zone have no room for a type; "" stands for each of them.
func (e *Endpoint) NoCapacity(zone, instanceType string) {
	e.locked(func() {
		if e.faults.full == nil {
			e.faults.full = map[string]bool{}
		}
		e.faults.full[zone+"/"+instanceType] = true
	})
}

// Capacity lets all zones have room again.
func (e *Endpoint) Capacity() { e.locked(func() { e.faults.full = nil }) }

// Allow allows these actions only, as a policy would: "ec2:Describe*". Without any, all are allowed.
func (e *Endpoint) Allow(actions ...string) {
	e.locked(func() { e.faults.allowed, e.faults.limited = actions, actions != nil })
}

// KeepHosts lets hosts not be released, as those of Apple's machines for a day.
func (e *Endpoint) KeepHosts(yes bool) { e.locked(func() { e.faults.keeps = yes }) }

func (e *Endpoint) locked(do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.world.settle(time.Now().UTC())
	do()
}

func (f *faults) noRoom(zone, instanceType string) bool {
	return f.full[zone+"/"+instanceType] || f.full["/"+instanceType] || f.full[zone+"/"] || f.full["/"]
}

func (f *faults) loses(op string) bool {
	if f.lost[op] == 0 {
		return false
	}
	f.lost[op]--
	return true
}

// checks are the lies and rights that come before an operation is done.
func (c *call) checks(r *http.Request, body []byte) error {
	f := &c.e.faults
	for _, action := range c.actions() {
		if f.limited && !slices.ContainsFunc(f.allowed, func(p string) bool { ok, _ := path.Match(p, action); return ok }) {
			code := map[string]string{"ec2": "UnauthorizedOperation", "s3": "AccessDenied", "sts": "AccessDenied"}[c.service]
			if code == "" {
				code = "AccessDeniedException"
			}
			return fault(code, "You are not authorized to perform this operation. %s is not authorized to perform: %s", c.principal, action)
		}
	}
	if f.throttle > 0 && f.chance.Float64() < f.throttle {
		return fault(tooMany[c.service], "Request limit exceeded.")
	}
	for i := range f.fails {
		if f.fails[i].op == c.op && f.fails[i].times > 0 {
			f.fails[i].times--
			return fault(f.fails[i].code, "as the test asked for")
		}
	}
	if c.in.Bool("DryRun") && !slices.Contains([]string{"RunInstances", "TerminateInstances"}, c.op) { // these look closer
		return fault("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
	}
	return checksum(r, body)
}

var tooMany = map[string]string{
	"ec2": "RequestLimitExceeded", "s3": "SlowDown", "ebs": "RequestThrottledException", "sts": "Throttling", "servicequotas": "TooManyRequestsException",
}

// paged is the part of a list that is answered, and where the next one begins.
func paged[T any](c *call, list []T, asked int64, token string) ([]T, string, error) {
	from := 0
	if token != "" {
		n, err := strconv.Atoi(token)
		if err != nil || n < 0 || n > len(list) {
			return nil, "", fault("InvalidNextToken", "The token '%s' is invalid", token)
		}
		from = n
	}
	list = list[from:]
	size := c.e.faults.page
	if asked > 0 && (size == 0 || int(asked) < size) {
		size = int(asked)
	}
	if size == 0 || len(list) <= size {
		return list, "", nil
	}
	return list[:size], strconv.Itoa(from + size), nil
}

func parseHex(text string) (int, error) {
	n, err := strconv.ParseUint(text, 16, 31)
	return int(n), err
}
