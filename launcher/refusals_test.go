package launcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/launcher/lesson"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// believing is a configuration of two clouds that are believed to hold 250 each.
const believing = `
zookeeper-servers: [{host: 127.0.0.1}]
labels: [{name: small}]
diskimages: [{name: debian, elements: [debian], username: tester}]
providers:
  - name: narrow
    driver: fake
    cloud: fake
    diskimages: [{name: debian}]
    pools: [{name: main, max-servers: 250, ignore-provider-quota: true, labels: [{name: small, diskimage: debian, min-ram: 1024}]}]
  - name: wide
    driver: fake
    cloud: fake
    diskimages: [{name: debian}]
    pools: [{name: main, max-servers: 250, ignore-provider-quota: true, labels: [{name: small, diskimage: debian, min-ram: 1024}]}]
`

// narrow makes a cloud hold less than it says, and counts what it is asked.
type narrow struct {
	asked, refused atomic.Int32
	room           atomic.Int32
	held           atomic.Int32
}

func (n *narrow) hook(_ context.Context, c fake.Call) error {
	switch {
	case c.Op == fake.OpLimits: // it does not tell what it holds
		return nil
	case c.Op == fake.OpCreate && !c.Done:
		n.asked.Add(1)
		if n.held.Add(1) > n.room.Load() {
			n.held.Add(-1)
			n.refused.Add(1)
			return fmt.Errorf("%w: Maximum number of ports exceeded", providers.ErrQuota)
		}
	case c.Op == fake.OpDeleteNode && c.Done:
		n.held.Add(-1)
	}
	return nil
}

// narrowSite is a site with two such clouds, of which the first holds room machines.
func narrowSite(t *testing.T, room, wide int32) (s *site, first, second *narrow) {
	t.Helper()
	s = newSite(t, strings.ReplaceAll(believing, "max-servers: 250", "max-servers: 10"))
	s.image()
	first, second = &narrow{}, &narrow{}
	first.room.Store(room)
	second.room.Store(wide)
	s.clouds["narrow"].SetHook(first.hook)
	s.clouds["wide"].SetHook(second.hook)
	return s, first, second
}

// What a cloud refuses another one gets at once, and the first is not asked again
// and again.
func TestRefusedRequestsGoElsewhere(t *testing.T) {
	t.Parallel()
	s, first, second := narrowSite(t, 2, 10)
	s.launch()
	var group sync.WaitGroup
	ids := make([]string, 12)
	for i := range ids {
		ids[i] = s.submit(zuul.Wish{Labels: []string{"small"}, Fresh: true})
	}
	for _, id := range ids {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if out, err := s.zuul.Wait(ctx, id); err != nil || out.State != "fulfilled" || len(out.DeclinedBy) > 0 {
				t.Errorf("%+v: %v", out, err)
			}
		})
	}
	group.Wait()
	if no := first.refused.Load(); no == 0 || no > lesson.AtOnce+1 {
		t.Errorf("%d creations were refused, want 1 to %d", no, lesson.AtOnce+1)
	}
	if made := second.asked.Load() - second.refused.Load(); made != 10 {
		t.Errorf("the other cloud made %d machines", made)
	}
}

// lessonOf is what the tree says a cloud taught.
func (s *site) lessonOf(cloud string) lesson.Lesson {
	s.t.Helper()
	var l lesson.Lesson
	data, _, err := s.store.Session().Get(s.t.Context(), zkmodel.RefusalsPath(cloud))
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// A launcher that comes knows what others have learned, and a place that comes free
// is used without a refusal more.
func TestLessonsAreShared(t *testing.T) {
	t.Parallel()
	s, first, second := narrowSite(t, 2, 3)
	l := s.launch()
	var ids []string
	for range 8 { // three of them wait
		ids = append(ids, s.submit(zuul.Wish{Labels: []string{"small"}, Fresh: true}))
	}
	full := func() bool { return first.held.Load() == 2 && second.held.Load() == 3 }
	zktest.Eventually(t, func() bool { return full() && first.refused.Load() > 0 && second.refused.Load() > 0 }, "both clouds full")
	zktest.Eventually(t, func() bool {
		nodes := s.nodes()
		return len(nodes) == 5 && !slices.ContainsFunc(nodes, func(n *zkmodel.Node) bool { return n.State != zkmodel.NodeReady || n.Locked })
	}, "the refused nodes gone")
	l.stop()
	if got := s.lessonOf("narrow"); got.Failures != 1 || got.Holds[providers.Instances] != 2 {
		t.Errorf("narrow taught %+v", got)
	}
	before := first.asked.Load()
	s.launch()
	<-time.After(2 * time.Second) // less than the first pause
	if asked := first.asked.Load() - before; asked != 0 {
		t.Errorf("a launcher that came asked the full cloud %d times", asked)
	}
	var back string
	for _, n := range s.nodes() {
		if n.Provider == "narrow" {
			back = n.AllocatedTo
		}
	}
	nodes, err := s.zuul.Accept(t.Context(), s.wait(back))
	if err = errors.Join(err, s.zuul.Return(nodes...)); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool { return first.asked.Load() > before && full() }, "the place used again")
	if got := s.lessonOf("narrow"); got.Failures > 2 {
		t.Errorf("narrow taught %+v", got)
	}
	for _, id := range ids {
		if err := s.zuul.Cancel(id); err != nil {
			t.Error(err)
		}
	}
}

// telling is a cloud that tells of another limit than it has.
type telling struct {
	keepOpen
	instances, asked *atomic.Int32
}

func (c telling) Limits(context.Context, providers.Ours) (providers.Resources, error) {
	c.asked.Add(1)
	return providers.Resources{providers.Instances: int(c.instances.Load())}, nil
}

// A quota that is raised while requests wait for room is noticed soon, in each of
// several clouds, and no cloud is asked all the time.
func TestRaisedQuotaIsNoticed(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.ReplaceAll(believing, "true", "false"))
	s.image()
	var instances, asked atomic.Int32
	instances.Store(2)
	for range 2 {
		s.launch(func(d *launcher.Deps) {
			d.Open = func(p configs.Provider) (providers.Provider, error) {
				return telling{keepOpen{s.clouds[p.Name]}, &instances, &asked}, nil
			}
		})
	}
	var ids []string
	for range 6 {
		ids = append(ids, s.submit(zuul.Wish{Labels: []string{"small"}, Fresh: true}))
	}
	zktest.Eventually(t, func() bool { return len(s.nodes()) == 4 }, "both clouds full")
	for cloud := range s.clouds {
		zktest.Eventually(t, func() bool {
			_, there, err := s.store.Session().Exists(t.Context(), zkmodel.LimitsPath(cloud))
			return err == nil && there
		}, "what cloud %s told in the tree", cloud)
	}
	begun, before := time.Now(), asked.Load()
	instances.Store(3)
	for _, id := range ids {
		if out := s.wait(id); out.State != "fulfilled" {
			t.Errorf("%+v", out)
		}
	}
	// Each of two clouds after 2 s, 4 s, 8 s and 16 s at the most.
	if got, most := asked.Load()-before, int32(2*(2+time.Since(begun)/(2*time.Second))); got > most {
		t.Errorf("asked %d times for limits, want at most %d", got, most)
	}
}
