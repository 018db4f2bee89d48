package shared

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
)

// board is the tree as a Teacher writes it.
type board struct {
	lessons   []byte
	turns     []zkmodel.Turn
	forgotten []string
	failing   error
}

func (b *board) ChangeRefusals(_ context.Context, _ string, change func(old []byte) ([]byte, zkmodel.Turn, error)) error {
	if b.failing != nil {
		return b.failing
	}
	next, turn, err := change(b.lessons)
	b.lessons = next
	if turn.Kind != "" {
		b.turns = append(b.turns, turn)
	}
	return err
}

func (b *board) ForgetLimits(_ context.Context, provider string) error {
	b.forgotten = append(b.forgotten, provider)
	return b.failing
}

func (b *board) lesson(t *testing.T) lesson.Lesson {
	t.Helper()
	var l lesson.Lesson
	if err := json.Unmarshal(b.lessons, &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// north is a cloud that is not opened.
func north() *supply.Provider {
	return supply.New(configs.Provider{Name: "north"}, nil, hclog.NewNullLogger(), time.Now, func() {})
}

// teacher is one that sees two machines in the cloud north, beside the node that is
// launched, and one in another.
func teacher(b *board) (*Teacher, *zkmodel.Node, *bytes.Buffer) {
	log := &bytes.Buffer{}
	launched := &zkmodel.Node{ID: "3", Provider: "north", State: zkmodel.NodeBuilding}
	nodes := []*zkmodel.Node{
		{ID: "1", Provider: "north", State: zkmodel.NodeReady},
		{ID: "2", Provider: "north", State: zkmodel.NodeInUse},
		launched,
		{ID: "4", Provider: "south", State: zkmodel.NodeReady},
	}
	return &Teacher{
		Records: b, Nodes: func() []*zkmodel.Node { return nodes }, Now: time.Now,
		Log: hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Debug}),
	}, launched, log
}

var errFull = errors.New("too many ports")

// What a refusal teaches is known here and in the tree, and counts the machines of that
// cloud without the one that was refused: counting it would take the cloud for larger
// than it is, and ask again at once.
func TestARefusalIsShared(t *testing.T) {
	b := &board{}
	teach, n, log := teacher(b)
	c := north()
	teach.Refused(t.Context(), c, lesson.Asked{}, n, true, errFull)
	for where, l := range map[string]lesson.Lesson{"here": c.Lessons().Lesson, "in the tree": b.lesson(t)} {
		if l.Failures != 1 || l.Holds[providers.Instances] != 2 || l.Reason != errFull.Error() || l.Late {
			t.Errorf("%s: %+v", where, l)
		}
	}
	if len(b.turns) != 1 || b.turns[0] != (zkmodel.Turn{Kind: event.ProviderRefusing, Reason: errFull.Error()}) {
		t.Errorf("told is %+v", b.turns)
	}
	if teach.Refused(t.Context(), c, lesson.Asked{Round: 1}, n, true, errFull); len(b.turns) != 1 {
		t.Errorf("told again: %+v", b.turns)
	}
	if len(b.forgotten) == 0 || b.forgotten[0] != "north" {
		t.Errorf("limits of %v are asked for anew, want those of north", b.forgotten)
	}
	if !strings.Contains(log.String(), "[WARN]  Cloud refuses") {
		t.Errorf("said:\n%s", log)
	}
}

// Limits that do not count are not asked for anew, nor are those of a cloud whose refusal
// told nothing new: it would be asked again and again by a burst of launches.
func TestLimitsAreAskedForAnewOnce(t *testing.T) {
	b := &board{}
	teach, n, log := teacher(b)
	teach.Refused(t.Context(), north(), lesson.Asked{}, n, false, errFull)
	if len(b.forgotten) != 0 {
		t.Errorf("limits of %v are asked for anew, which do not count", b.forgotten)
	}
	b.lessons = nil
	c := north()
	teach.Refused(t.Context(), c, lesson.Asked{}, n, true, errFull)
	log.Reset()
	teach.Refused(t.Context(), c, lesson.Asked{}, n, true, errFull) // was under way then
	if len(b.forgotten) != 1 {
		t.Errorf("limits asked for anew %d times, want once", len(b.forgotten))
	}
	if strings.Contains(log.String(), "[WARN]") {
		t.Errorf("warned again:\n%s", log)
	}
}

// The tree has the last word: what another launcher has learned before is added to, not
// lost, and what cannot be read there is begun anew.
func TestTheTreeHasTheLastWord(t *testing.T) {
	other, err := json.Marshal(lesson.Lesson{Number: 7, Round: 5, Failures: 2, Holds: providers.Resources{providers.Instances: 9}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		old   []byte
		round int
	}{"another's": {other, 5}, "nothing": {nil, 1}, "no JSON": {[]byte("{"), 1}} {
		b := &board{lessons: c.old}
		teach, n, _ := teacher(b)
		cloud := north()
		teach.Refused(t.Context(), cloud, lesson.Asked{}, n, true, errFull)
		if l := b.lesson(t); l.Round != c.round || cloud.Lessons().Lesson.Number != l.Number {
			t.Errorf("%s: the tree has %+v, we %+v", name, l, cloud.Lessons().Lesson)
		}
	}
}

// What cannot be written counts here all the same: a launcher that cannot reach the tree
// would else ask a full cloud in a circle.
func TestARefusalThatIsNotSharedCountsHere(t *testing.T) {
	b := &board{failing: errors.New("no connection")}
	teach, n, log := teacher(b)
	c := north()
	teach.Refused(t.Context(), c, lesson.Asked{}, n, true, errFull)
	if c.Lessons().Lesson.Failures != 1 {
		t.Errorf("learned %+v", c.Lessons().Lesson)
	}
	for _, said := range []string{"What a refusal taught is not shared", "Limits stay as they are"} {
		if !strings.Contains(log.String(), said) {
			t.Errorf("not said: %s", said)
		}
	}
}

// Only a trial that does well changes what is known; any other acceptance writes nothing,
// as there is one for each launch.
func TestOnlyTrialsTeachByAcceptance(t *testing.T) {
	b := &board{}
	teach, n, _ := teacher(b)
	c := north()
	teach.Accepted(t.Context(), c, lesson.Asked{Kind: lesson.Trial}, n)
	if b.lessons != nil {
		t.Errorf("an acceptance before any refusal wrote %s", b.lessons)
	}
	teach.Refused(t.Context(), c, lesson.Asked{}, n, true, errFull)
	teach.Accepted(t.Context(), c, lesson.Asked{Round: 1, Kind: lesson.Trial}, n)
	if l := b.lesson(t); l.Streak != 1 || l.Holds[providers.Instances] != 3 {
		t.Errorf("after a trial: %+v, want one more machine than the two", l)
	}
	for range 50 { // more than enough
		teach.Accepted(t.Context(), c, lesson.Asked{Round: 1, Kind: lesson.Trial}, n)
	}
	if len(b.turns) != 2 || b.turns[1].Kind != event.ProviderAccepting {
		t.Errorf("told is %+v", b.turns)
	}
}

// Mistakes: one availability zone that lacks capacity counts as a cloud that is full, or is used for the next request; a cloud
// all of whose zones lack capacity does not count as full; a zone that works again stays avoided; a quota refusal counts for one zone only.
func TestAZoneThatRefuses(t *testing.T) {
	b := &board{}
	teach, n, _ := teacher(b)
	n.Pool = "main"
	zones := []string{"z1", "z2"}
	c := supply.New(configs.Provider{Name: "north", Pools: []configs.Pool{{Name: "main", AvailabilityZones: zones}}}, nil, hclog.NewNullLogger(), time.Now, func() {})
	open := func() string { return strings.Join(c.Lessons().OpenZones(c.ZonesOf("main"), time.Now()), " ") }
	refuse := func(zone string, why error) lesson.Lesson {
		n.AZ = zone
		teach.Refused(t.Context(), c, lesson.Asked{}, n, true, why)
		return b.lesson(t)
	}
	if l := refuse("z1", providers.ErrCapacity); l.Failures != 0 || l.Zones["z1"] != 1 || open() != "z2" {
		t.Errorf("one zone refused: %+v, open %q", l, open())
	}
	if l := refuse("z2", providers.ErrCapacity); l.Failures != 1 || open() != "z1 z2" {
		t.Errorf("all refused: %+v, open %q", l, open())
	}
	teach.ZoneWorks(t.Context(), c, "z2")
	if l := b.lesson(t); l.Zones["z2"] != 0 || l.Zones["z1"] != 1 || open() != "z2" {
		t.Errorf("one works again: %+v, open %q", l, open())
	}
	if l := refuse("z9", providers.ErrCapacity); l.Zones["z9"] != 0 || l.Failures == 0 {
		t.Errorf("a zone that the pool does not have: %+v", l)
	}
	if l := refuse("z2", errFull); l.Zones["z2"] != 0 {
		t.Errorf("a quota that is full: %+v", l)
	}
}
