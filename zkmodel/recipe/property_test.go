package recipe

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// names draws children of a lock's directory, contenders and others.
func names() *rapid.Generator[[]string] {
	name := rapid.Custom(func(t *rapid.T) string {
		seq := fmt.Sprintf("%010d", rapid.Int32().Draw(t, "seq"))
		if rapid.Bool().Draw(t, "foreign") {
			return rapid.SampledFrom([]string{"lock", "__lock__", "__rlock__" + seq, "x__lock__1", "__lock__0000000000x", "__lock__00000000", seq}).Draw(t, "name")
		}
		return rapid.StringMatching(`[0-9a-f]{4}`).Draw(t, "id") + "__lock__" + seq
	})
	return rapid.SliceOfDistinct(name, func(s string) string { return s })
}

// TestContendersAreOrdered: whatever the order in which a server lists children,
// all clients see the same line, in which numbers grow as ZooKeeper gave them.
func TestContendersAreOrdered(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := names().Draw(t, "names")
		line := sortContenders(list, lockMark)
		again := sortContenders(rapid.Permutation(list).Draw(t, "shuffled"), lockMark)
		if !slices.Equal(line, again) {
			t.Fatalf("%v and %v", line, again)
		}
		for i, c := range line {
			if !strings.HasSuffix(c.Name, lockMark+c.Seq) || !IsContender(c.Name) {
				t.Fatalf("%+v is no contender", c)
			}
			if i > 0 && line[i-1].Seq > c.Seq {
				t.Fatalf("%s stands before %s", line[i-1].Seq, c.Seq)
			}
		}
	})
}

// TestOwnerIsStable: a member that comes takes shares from all, and one that
// leaves gives only its own away; the order of members does not matter.
func TestOwnerIsStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		member := rapid.StringMatching(`[a-z]{1,8}-[0-9]{1,5}`)
		members := rapid.SliceOfNDistinct(member, 1, 20, rapid.ID[string]).Draw(t, "members")
		share := rapid.String().Draw(t, "share")
		owner := Owner(members, share)
		if !slices.Contains(members, owner) {
			t.Fatalf("%q owns a share of %v", owner, members)
		}
		if other := Owner(rapid.Permutation(members).Draw(t, "shuffled"), share); other != owner {
			t.Fatalf("%q or %q", owner, other)
		}
		newcomer := member.Draw(t, "newcomer")
		if next := Owner(append(slices.Clone(members), newcomer), share); next != owner && next != newcomer {
			t.Fatalf("%s went from %q to %q when %q came", share, owner, next, newcomer)
		}
	})
}

// TestOwnerIsFair: no member has more than twice its part of many shares.
func TestOwnerIsFair(t *testing.T) {
	t.Parallel()
	members, owns := []string{"nb01-1", "nb01-2", "nb02-1", "nb03-1"}, map[string]int{}
	const shares = 4000
	for i := range shares {
		owns[Owner(members, fmt.Sprintf("image-%d", i))]++
	}
	for _, m := range members {
		if n := owns[m]; n < shares/8 || n > shares/2 {
			t.Errorf("%s owns %d of %d", m, n, shares)
		}
	}
	if Owner(nil, "x") != "" {
		t.Error("nobody owns something")
	}
}

// TestClaimsFit: the claims that a semaphore grants never exceed its limit, and
// none is granted before one that stands in front of it.
func TestClaimsFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 10).Draw(t, "limit")
		var list []string
		for i := range rapid.IntRange(0, 12).Draw(t, "claims") {
			list = append(list, fmt.Sprintf("%04x%s%d__%010d", i*7919%65536, semMark, rapid.IntRange(1, limit).Draw(t, "weight"), i))
		}
		list = append(list, "foreign", "x__claim__0__0000000000", "y__claim__-5__0000000000", "z__claim__99999999999__0000000000")
		list = rapid.Permutation(list).Draw(t, "shuffled")
		sum, waiting := 0, false
		for _, c := range sortClaims(list) {
			granted := weightUpTo(list, c.Name) <= limit
			if granted && waiting {
				t.Fatalf("%s overtakes", c.Name)
			}
			if waiting = !granted; granted {
				sum += c.Weight
			}
		}
		if sum > limit {
			t.Fatalf("%d of %d granted", sum, limit)
		}
	})
}
