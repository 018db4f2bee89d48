package schedule

import (
	"fmt"
	"strings"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/launcher/lesson"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// skyOf are pools of so many clouds, equal but for their size.
func skyOf(sizes ...int) []*Pool {
	var pools []*Pool
	for i, size := range sizes {
		pools = append(pools, aPool(func(p *Pool) {
			p.Provider = fmt.Sprintf("cloud-%d", i)
			p.ID, p.Cloud = p.Provider+"-main", nil
			p.Limits = providers.Resources{providers.Instances: size}
			p.Learned.Told = true
		}))
	}
	return pools
}

// accepted counts the requests that each pool takes.
func accepted(s *Snapshot) map[string]int {
	taken := map[string]int{}
	for _, d := range Assign(s) {
		if d, accepts := d.(Accept); accepts {
			taken[d.Pool.Provider]++
		}
	}
	return taken
}

func manyRequests(count int) []*zkmodel.Request {
	var list []*zkmodel.Request
	for i := range count {
		list = append(list, aRequest(fmt.Sprintf("200-%010d", i), "a"))
	}
	return list
}

func TestPoolsAreFilledAlike(t *testing.T) {
	s := &Snapshot{Pools: skyOf(10, 20, 40), Requests: manyRequests(35)}
	taken := accepted(s)
	for i, want := range []int{5, 10, 20} {
		if got := taken[fmt.Sprintf("cloud-%d", i)]; got != want {
			t.Errorf("cloud %d of %v takes %d of 35, want %d", i, taken, got, want)
		}
	}
	s.Order = configs.OrderFill
	if taken := accepted(s); taken["cloud-0"] != 10 || taken["cloud-1"] != 20 || taken["cloud-2"] != 5 {
		t.Errorf("filled one after the other: %v", taken)
	}
	s.Order = configs.OrderSpread
	s.Pools[2].Priority = 1
	if taken := accepted(s); taken["cloud-2"] != 35 {
		t.Errorf("priority counts first: %v", taken)
	}
}

// Of pools that are equally used the request's id draws one, for every launcher the
// same.
func TestEqualPoolsAreDrawn(t *testing.T) {
	first := map[string]bool{}
	for i := range 40 {
		s := &Snapshot{Pools: skyOf(10, 10, 10), Requests: []*zkmodel.Request{aRequest(fmt.Sprintf("200-%010d", i), "a")}}
		d := Assign(s)[0].(Accept)
		first[d.Pool.Provider] = true
		s.Pools[0], s.Pools[2] = s.Pools[2], s.Pools[0]
		if again := Assign(s)[0].(Accept); again.Pool.Provider != d.Pool.Provider {
			t.Errorf("%s, and in another order %s", d.Pool.Provider, again.Pool.Provider)
		}
	}
	if len(first) != 3 {
		t.Errorf("of 40 requests the first pool was one of %v", first)
	}
}

// refusing is a cloud that has refused small machines when it held so many.
func refusing(held int) lesson.View {
	one := providers.Resources{providers.Instances: 1, providers.RAM: 1024}
	holds := providers.Resources{providers.Instances: held, providers.RAM: held * 1024}
	return lesson.View{Lesson: lesson.Lesson{}.Refuse(lesson.Refusal{Need: one, Use: lesson.Use{Held: holds}, Reason: "full"})}
}

func TestCloudThatRefusedIsPassedOver(t *testing.T) {
	s := &Snapshot{Pools: skyOf(250, 250), Requests: manyRequests(4)}
	s.Pools[0].Learned = refusing(3)
	s.Uses = map[string]*lesson.Use{"cloud-0": {
		Held: providers.Resources{providers.Instances: 3, providers.RAM: 3072}, Flying: providers.Resources{},
	}}
	if taken := accepted(s); taken["cloud-1"] != 4 {
		t.Errorf("one cloud is full: %v", taken)
	}
	s.Pools = s.Pools[:1]
	for _, d := range Assign(s) {
		if w, waits := d.(Wait); !waits || len(w.Short) != 1 {
			t.Errorf("all is full: %s, short of %v: %s", show(d), w.Short, d.Why())
		}
	}
	s.Pools[0].Learned.Due = true
	if taken := accepted(s); taken["cloud-0"] != 1 {
		t.Errorf("time to try: %v", taken)
	}
	// What the cloud may never hold makes nobody wait, and is not declined.
	s.Requests = append([]*zkmodel.Request{aRequest("100-0000000000", "a", "a", "a", "a", "a")}, s.Requests...)
	decisions := Assign(s)
	if !strings.HasPrefix(verdicts(decisions), "wait accept") {
		t.Errorf("a large request before: %s, then %s", show(decisions[0]), show(decisions[1]))
	}
	s.Requests = s.Requests[:1]
	if d, accepts := Assign(s)[0].(Accept); !accepts || d.Asked.Kind != lesson.Trial {
		t.Errorf("a large request alone: %s, %+v", d.Why(), d.Asked)
	}
}

func TestHint(t *testing.T) {
	p := aPool(func(p *Pool) { p.Limits = providers.Resources{providers.Instances: 250} }) // 1 GiB each
	for name, c := range map[string]struct {
		told providers.Resources
		want bool
	}{
		"tells nothing":     {nil, false},
		"tells of more":     {providers.Resources{providers.Instances: 250, providers.RAM: 1 << 20}, false},
		"less instances":    {providers.Resources{providers.Instances: 20, providers.RAM: 1 << 20}, true},
		"less memory":       {providers.Resources{providers.Instances: 1000, providers.RAM: 20 << 10}, true},
		"of something else": {providers.Resources{providers.Volumes: 1}, false},
	} {
		if got := Hint(p, c.told) != nil; got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Each look asks each pool about each pending request. What that allocates is paid for by every burst: with 20 clouds
// they were 268 for a request.
func TestAskingManyPoolsAllocatesLittle(t *testing.T) {
	const clouds, requests = 20, 100
	sizes := make([]int, clouds)
	for i := range sizes {
		sizes[i] = 1000
	}
	s := &Snapshot{Pools: skyOf(sizes...), Requests: manyRequests(requests)}
	perRequest := testing.AllocsPerRun(3, func() { Assign(s) }) / requests
	t.Logf("%.0f allocations for a request", perRequest)
	if most := 4.0 * clouds; perRequest > most {
		t.Errorf("%.0f allocations for a request with %d pools, want at most %.0f", perRequest, clouds, most)
	}
}
