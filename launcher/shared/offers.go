package shared

import (
	"bytes"
	"context"
	"sync"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Offers follows what pools offered. A launcher that restarts is away for a moment, and
// nobody else may have its labels. So what each pool offered, Nodepool's too, is
// remembered in the tree, and for launcher-grace after it left our pools decline nothing
// that it could serve.
type Offers struct {
	*recipe.Tree

	mu      sync.Mutex
	read    map[string]offered // by the record's name, so that each look decodes only what has changed
	known   map[string]zkmodel.Offer
	version uint64 // of the tree, that known is of
}

// offered is an offer, and the record that it was read from.
type offered struct {
	data  []byte
	offer zkmodel.Offer
	ok    bool
}

// NewOffers makes an Offers.
func NewOffers(client *recipe.Client, log hclog.Logger) *Offers {
	return &Offers{Tree: newFolder(client, zkmodel.OffersRoot, log.Named("offers"))}
}

// Known are those in the tree, by path. It is not to be changed: while the tree is the same, so is what all get.
func (o *Offers) Known() map[string]zkmodel.Offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.View(func(v recipe.View) {
		if o.known != nil && v.Version() == o.version {
			return
		}
		known, read := map[string]zkmodel.Offer{}, map[string]offered{}
		v.Each(zkmodel.OffersRoot, func(c recipe.Child) {
			e := c.Entry()
			one, seen := o.read[c.Name()]
			if !seen || !bytes.Equal(one.data, e.Data) {
				one.data = e.Data
				one.offer, one.ok = zkmodel.DecodeOffer(e.Data, e.Stat)
			}
			one.offer.Stat = e.Stat
			read[c.Name()] = one
			if one.ok {
				known[zkmodel.OffersRoot+"/"+c.Name()] = one.offer
			}
		})
		o.known, o.read, o.version = known, read, v.Version()
	})
	return o.known
}

// Run calls changed when one has changed, until ctx ends.
func (o *Offers) Run(ctx context.Context, changed func()) error { return follow(ctx, o.Tree, changed) }
