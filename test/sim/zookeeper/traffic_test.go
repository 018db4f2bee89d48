package zookeeper_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"poolkeeper/test/sim/zookeeper"
)

// Mistakes: nodes that Fill has made are not as clients make them, on one of the servers; what passes
// is counted wrongly, or pings are.
func TestFillAndTraffic(t *testing.T) {
	const many = 20_000
	synctest.Test(t, func(t *testing.T) {
		model := zookeeper.New(zookeeper.Options{Servers: 3})
		defer model.Close()
		model.Fill(1, func(int) (string, []byte) { return "/all", nil })
		model.Fill(many, func(i int) (string, []byte) { return fmt.Sprintf("/all/%010d", i), []byte("x") })
		for i, addr := range model.Addrs() {
			conn, _, err := zk.Connect([]string{addr}, 30*time.Second, zk.WithLogInfo(false), zk.WithDialer(func(network, address string, _ time.Duration) (net.Conn, error) {
				return model.Dial(context.Background(), network, address)
			}))
			if err != nil {
				t.Fatal(err)
			}
			children, stat, err := conn.Children("/all")
			if err != nil || len(children) != many || stat.NumChildren != many || stat.Cversion != int32(many+2*i) {
				t.Errorf("%s: %d children, %+v: %v", addr, len(children), stat, err)
			}
			next, err := conn.Create("/all/", nil, zk.FlagSequence|zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			if err != nil || next < fmt.Sprintf("/all/%010d", many) {
				t.Errorf("the next number is %s: %v", next, err)
			}
			if err := conn.Delete(next, -1); err != nil {
				t.Error(err)
			}
			before := model.Traffic()
			<-time.After(time.Minute) // pings
			if idle := model.Traffic(); idle != before {
				t.Errorf("a minute without requests: %+v, then %+v", before, idle)
			}
			if _, _, _, err := conn.GetW("/all"); err != nil {
				t.Error(err)
			}
			if _, err := conn.Set("/all", []byte("y"), -1); err != nil {
				t.Error(err)
			}
			<-time.After(time.Second)
			after := model.Traffic()
			if after.Requests-before.Requests != 2 || after.Events-before.Events != 1 || after.Bytes-before.Bytes < 100 {
				t.Errorf("two requests and an event: %+v, then %+v", before, after)
			}
			conn.Close()
			<-time.After(time.Second)
			if _, err := conn.Set("/all", nil, -1); err == nil {
				t.Error("a connection that was closed is open")
			}
		}
	})
}
