// Package client mends what the ZooKeeper client library lacks or gets wrong: it stands
// between the library and its connections, and sees every packet pass.
package client
