package launcher

import (
	"context"
	"fmt"
	"time"

	"poolkeeper/zkmodel"
)

// lookLimit is how long one look at everything may take before we call it stuck.
const lookLimit = 30 * time.Second

// Tree is the launcher's view of images, nodes, requests and components, for
// those who show it.
func (l *Launcher) Tree() *zkmodel.Mirror { return l.mirror }

// Check asks for a sign of life: a launcher that serves must have begun a look
// lately, or be waiting for a reason to.
func (l *Launcher) Check(context.Context) error {
	if began := l.looking.Load(); began != 0 {
		if took := l.now().Sub(time.Unix(0, began)); took > lookLimit {
			return fmt.Errorf("check launcher: a look at the tree takes %s already", took)
		}
	}
	return nil
}
