package shared

import (
	"context"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Offers follows what pools offered. A launcher that restarts is away for a moment, and
// nobody else may have its labels. So what each pool offered, Nodepool's too, is
// remembered in the tree, and for launcher-grace after it left our pools decline nothing
// that it could serve.
type Offers struct{ *recipe.Tree }

// NewOffers makes an Offers.
func NewOffers(client *recipe.Client, log hclog.Logger) *Offers {
	return &Offers{newFolder(client, zkmodel.OffersRoot, log.Named("offers"))}
}

// Known are those in the tree, by path.
func (o *Offers) Known() map[string]zkmodel.Offer {
	known := map[string]zkmodel.Offer{}
	o.View(func(v recipe.View) {
		v.Each(zkmodel.OffersRoot, func(c recipe.Child) {
			e := c.Entry()
			if offer, ok := zkmodel.DecodeOffer(e.Data, e.Stat); ok {
				known[zkmodel.OffersRoot+"/"+c.Name()] = offer
			}
		})
	})
	return known
}

// Run calls changed when one has changed, until ctx ends.
func (o *Offers) Run(ctx context.Context, changed func()) error { return follow(ctx, o.Tree, changed) }
