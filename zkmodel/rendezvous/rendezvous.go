// Package rendezvous says which of several members a share falls to, so that all who
// ask agree, and only the shares of a member that comes or goes move.
package rendezvous

import "strings"

// Owner returns the member that share falls to, or "" if there is none. When a
// member comes or goes only its own shares move, whatever the order of members.
func Owner(members []string, share string) string {
	best, most := "", uint64(0)
	for _, member := range members {
		if points := score(member, share); best == "" || points > most || points == most && strings.Compare(member, best) < 0 {
			best, most = member, points
		}
	}
	return best
}

// score scores the pair by FNV-1a of "MEMBER\x00SHARE". FNV alone changes little in its high bits
// between similar names, so they are mixed (the finisher of MurmurHash3).
func score(member, share string) uint64 {
	x := fnv1a(fnv1a(fnv1a(14695981039346656037, member), "\x00"), share)
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// fnv1a continues a hash. hash/fnv would allocate, and launchers score each request with each pool.
func fnv1a(hash uint64, text string) uint64 {
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * 1099511628211
	}
	return hash
}
