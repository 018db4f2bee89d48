package main

import (
	"fmt"
	"slices"
	"strings"
)

// target is what is broken: a package, or some files of it, and the packages whose tests have to notice,
// the quickest first; behind a colon which of their tests, as an expression for their names.
type target struct {
	dir     string
	files   []string // none are all
	testers []string
}

// targets are what decides, and what keeps two from doing the same; a mistake costs most there.
var targets = []target{
	// Who gets what, under which quota; what is taken back from launchers that are gone.
	{dir: "launcher/schedule", testers: []string{"launcher/schedule"}},
	{dir: "launcher/lesson", testers: []string{"launcher/lesson", "launcher/schedule"}},
	{dir: "launcher/inflight", testers: []string{"launcher/inflight"}},
	{dir: "launcher/reap", testers: []string{"launcher/reap"}},
	// Requests and nodes of launchers that are gone: found, taken over, given back.
	{
		dir:     "launcher/request",
		files:   []string{"reclaim.go", "orphans.go", "lost.go", "giveback.go", "images.go"},
		testers: []string{"launcher/request"},
	},
	// Which machines no record stands for, and are deleted; which count by a record.
	{dir: "launcher/singleton", files: []string{"leaks.go", "leakremove.go", "counted.go"}, testers: []string{"launcher/singleton"}},
	{dir: "zkmodel/leak", testers: []string{"zkmodel/leak", "launcher/singleton"}},
	// What is built, uploaded, tried and deleted.
	{dir: "builder/plan", testers: []string{"builder/plan"}},
	// What is deleted, in clouds, on disk and in the tree; what builders that are gone have left; what leaks.
	{
		dir:     "builder/actions",
		files:   []string{"delete.go", "cloud.go", "lost.go", "leaks.go", "clean.go"},
		testers: []string{"builder/actions"},
	},
	// What builders that are gone have left on a host.
	{dir: "builder/disk", files: []string{"remove.go"}, testers: []string{"builder/disk"}},
	// Transitions; claims of requests and nodes.
	{
		dir:     "zkmodel",
		files:   []string{"state.go", "transition.go", "store_request.go", "store_node.go", "store_bundle.go"},
		testers: []string{"zkmodel"},
	},
	// Locks, fences and claims, and the lease of the session that they live with.
	{
		dir:     "zkmodel/recipe",
		files:   []string{"lock.go", "contender.go", "held.go", "bundle.go", "rwlock.go", "semaphore.go"},
		testers: []string{"zkmodel/recipe", "test/sim"},
	},
	{dir: "zkmodel/recipe/client", testers: []string{
		"zkmodel/recipe/client",
		"zkmodel/recipe:^Test(ChangedSessionID|CutOff|DialIsTheOnlyWayOut|DisconnectEndsNothing|ExpiredAnswer|MissedChanges|ReadMany|RefusedSession|SilentServer|SlowNetwork)",
		"test/sim",
	}},
}

// pick returns the targets of those names; all without any.
func pick(names []string) ([]target, error) {
	if len(names) == 0 {
		return targets, nil
	}
	var some []target
	for _, name := range names {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
		i := slices.IndexFunc(targets, func(t target) bool { return t.dir == name })
		if i < 0 {
			return nil, fmt.Errorf("%s is not in test/mutants/targets.go", name)
		}
		some = append(some, targets[i])
	}
	return some, nil
}
