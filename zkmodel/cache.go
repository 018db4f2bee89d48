package zkmodel

import (
	"sync"

	"poolkeeper/zkmodel/recipe"
)

// cache keeps decoded records, so that listing thousands of unchanged ones
// decodes nothing. A record is decoded again when its stamp changes.
type cache[T any] struct {
	mu      sync.Mutex
	records map[string]cached[T]
}

type cached[T any] struct {
	stamp  stamp
	record T
}

// stamp identifies one state of a record: the transaction that wrote it, and
// whether its lock was taken. The number of a transaction comes again once an older
// snapshot was restored, so its time belongs to it, in milliseconds.
type stamp struct {
	mzxid, mtime int64
	locked       bool
}

// stampOf is the stamp of a record with this Stat.
func stampOf(st recipe.Stat, locked bool) stamp {
	return stamp{st.Mzxid, st.Mtime.UnixMilli(), locked}
}

// get returns the record with this stamp, decoding it if need be.
func (c *cache[T]) get(name string, s stamp, read func() T) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.records[name]; ok && old.stamp == s {
		return old.record
	}
	if c.records == nil {
		c.records = map[string]cached[T]{}
	}
	record := read()
	c.records[name] = cached[T]{s, record}
	return record
}

// size is how many records are kept, about as many as there are.
func (c *cache[T]) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.records)
}

// trim forgets records that are not listed, once they are many.
func (c *cache[T]) trim(listed []T, name func(T) string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.records) <= len(listed)*5/4+64 {
		return
	}
	kept := make(map[string]cached[T], len(listed))
	for _, record := range listed {
		kept[name(record)] = c.records[name(record)]
	}
	c.records = kept
}

// lists keeps lists that were read from a tree until that changes.
type lists[T any] struct {
	mu      sync.Mutex
	version uint64 // of the tree
	known   map[string][]T
}

// at returns the list of this name as of a version of the tree, reading it if need be. The list
// must not be changed.
func (l *lists[T]) at(version uint64, name string, read func() []T) []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || l.version != version {
		l.version, l.known = version, map[string][]T{}
	}
	list, ok := l.known[name]
	if !ok {
		list = read()
		l.known[name] = list
	}
	return list
}
