// Package presence is what the tree tells of builders: this one's records among the
// components and below /poolkeeper/builders, whose its builder id is, and when the others
// were seen.
package presence
