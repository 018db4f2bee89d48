package supply_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// Mistakes: a launch that succeeds at its second attempt is shown as failing; a failure that stays
// after a success here or at another launcher; one label's failure shown of another.
func TestFailingLaunches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := run(t, &cloud{limits: providers.Resources{"instances": 5}})
		failing := func() map[string]map[string]zkmodel.Failing { return p.View().Failing }
		p.Launched("main", "small", errDown, false)
		if got := failing(); len(got) != 0 {
			t.Errorf("after the first of several attempts: %v", got)
		}
		pass(t, time.Second)
		p.Launched("main", "small", errors.New("503"), true)
		p.Launched("main", "large", nil, true)
		got := failing()["main"]
		if f := got["small"]; len(got) != 1 || f.Failed != 2 || f.Error != "503" || f.Last-f.Since != 1 {
			t.Errorf("failing: %+v", got)
		}
		node := &zkmodel.Node{State: zkmodel.NodeReady, Provider: "north", Pool: "main", Type: zkmodel.Strings{"small"}, StateTime: zkmodel.EpochOf(time.Now().Add(-time.Minute))}
		p.Recovered([]*zkmodel.Node{node})
		if len(failing()) != 1 {
			t.Error("a node that was ready before is no recovery")
		}
		node.StateTime = zkmodel.EpochOf(time.Now().Add(time.Minute))
		p.Recovered([]*zkmodel.Node{node})
		if got := failing(); len(got) != 0 {
			t.Errorf("another launcher has launched one: %v", got)
		}
		p.Launched("main", "small", errDown, true)
		p.Launched("main", "small", nil, true)
		if got := failing(); len(got) != 0 {
			t.Errorf("after a success: %v", got)
		}
		p.Launched("main", "small", errDown, true)
		pass(t, 25*time.Hour)
		if got := failing(); len(got) != 0 {
			t.Errorf("a day later: %v", got)
		}
	})
}

// Mistakes: an outage of the cloud that stays an attention item of a label without a launch since; a
// fault of one label that another label's success ends.
func TestOutageEndsForAllLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := run(t, &cloud{limits: providers.Resources{"instances": 5}})
		fail := func() {
			p.Launched("main", "small", fmt.Errorf("create: %w: 503", providers.ErrTransient), true)
			p.Launched("main", "large", fmt.Errorf("create: %w: 503", providers.ErrTransient), true)
			p.Launched("main", "large", fmt.Errorf("create: %w: no such flavor", providers.ErrInvalid), true)
			p.Launched("main", "large", fmt.Errorf("create: %w: 503", providers.ErrTransient), true)
		}
		left := func(after string) {
			t.Helper()
			got := p.View().Failing["main"]
			if f := got["large"]; len(got) != 1 || f.Failed != 3 {
				t.Errorf("after %s: %+v", after, got)
			}
		}
		fail()
		p.Launched("other", "tiny", nil, true)
		left("a success of another label")
		p.Launched("main", "large", nil, true)
		fail()
		p.Recovered([]*zkmodel.Node{{State: zkmodel.NodeReady, Provider: "north", Pool: "other", Type: zkmodel.Strings{"tiny"}, StateTime: zkmodel.EpochOf(time.Now().Add(time.Minute))}})
		left("another launcher's success")
	})
}

// Mistakes: a call without an answer that shows only once it has ended; one that stays slow after a
// quick answer.
func TestSlowAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := run(t, &cloud{limits: providers.Resources{"instances": 5}})
		began := zkmodel.EpochOf(time.Now())
		answered := p.Timing(t.Context(), "create server")
		pass(t, 29*time.Second)
		if got := p.View().Slow; got != (zkmodel.Slow{}) {
			t.Errorf("before its time: %+v", got)
		}
		pass(t, 2*time.Second)
		if got, want := p.View().Slow, (zkmodel.Slow{Call: "create server", Since: began}); got != want {
			t.Errorf("without an answer: %+v, want %+v", got, want)
		}
		answered()
		p.Timing(t.Context(), "list servers")()
		if p.View().Slow.Call != "create server" {
			t.Error("another call's answer counts for it")
		}
		p.Timing(t.Context(), "create server")()
		if got := p.View().Slow; got != (zkmodel.Slow{}) {
			t.Errorf("after a quick answer: %+v", got)
		}
	})
}

// Mistake: a trouble that begins again with each look.
func TestTroubleHasATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := run(t, &cloud{limits: providers.Resources{"instances": 5}})
		began := zkmodel.EpochOf(time.Now())
		p.Told(errDown)
		var v supply.View
		for range 3 {
			v = p.View()
			pass(t, time.Second)
		}
		if v.TroubleSince != began {
			t.Errorf("since %v, want %v", v.TroubleSince, began)
		}
	})
}
