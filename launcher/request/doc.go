// Package request is the life of one request in a launcher's hands: it is accepted,
// declined, settled, or taken over from a launcher that died, as decided.
package request
