package launcher

import (
	"testing"

	"poolkeeper/zkmodel"
)

// A node that is let go while the mirror is read counts still: the mirror may have
// been read before it showed the node.
func TestLedgerCountsWhatIsForgottenMeanwhile(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.note(&zkmodel.Node{ID: "0000000001", State: zkmodel.NodeReady})
	read := func() []*zkmodel.Node {
		l.forget(nil, []string{"0000000001"})
		return nil
	}
	if got := l.over(read); len(got) != 1 {
		t.Errorf("%d nodes, want the one that was ours", len(got))
	}
	if got := l.over(read); len(got) != 0 {
		t.Errorf("%d nodes, want none", len(got))
	}
}
