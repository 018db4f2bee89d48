package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// requestView is what the tree shows of a request while it waits.
type requestView struct {
	request  *zkmodel.Request
	requests []*zkmodel.Request   // all, in the order in which they are served
	nodes    []*zkmodel.Node      // all
	pools    []*zkmodel.Component // of all launchers
	why      string               // in the words of a launcher; may be ""
}

// text says how far a request has come, and what it waits for.
func (v requestView) text() string {
	r := v.request
	if r.State != zkmodel.RequestRequested {
		return fmt.Sprintf("request %s is %s%s", r.ID, r.State, v.machines())
	}
	return fmt.Sprintf("request %s waits: %s", r.ID, v.obstacle())
}

// obstacle is why no launcher has accepted a request.
func (v requestView) obstacle() string {
	labels := strings.Join(v.request.NodeTypes, ", ")
	waits := zkmodel.WaitsForProvider(v.pools, v.request)
	switch {
	case len(v.pools) == 0:
		return "no launcher runs"
	case waits != "":
		return waits
	case !v.served():
		return "no launcher that runs serves " + labels
	}
	before := slices.IndexFunc(v.requests, func(r *zkmodel.Request) bool { return r.ID == v.request.ID })
	queue := ""
	if before > 0 {
		queue = fmt.Sprintf("%d requests are served before it", before)
		if before == 1 {
			queue = "one request is served before it"
		}
	}
	told := slices.DeleteFunc([]string{v.why, v.request.Reason, queue}, func(s string) bool { return s == "" })
	return cmp.Or(strings.Join(slices.Compact(told), "; "), "a launcher has it to decide")
}

// unknownLabels returns an error for each label that neither the configuration nor a registered launcher has, with what
// was probably meant.
func unknownLabels(ctx context.Context, cfg *configs.Config, store *zkmodel.Store, labels []string) error {
	pools, err := store.Components(ctx, zkmodel.KindPool)
	if err != nil {
		return nil //nolint:nilerr // a launcher that cannot be read may have them
	}
	var known []string
	for _, l := range cfg.Labels {
		known = append(known, l.Name)
	}
	for _, p := range pools {
		known = slices.Concat(known, p.SupportedLabels, p.TroubledLabels)
	}
	var unknown error
	for _, label := range labels {
		if !slices.Contains(known, label) {
			unknown = errors.Join(unknown, fmt.Errorf("label %q is not in %s, and no launcher that runs has it%s",
				label, cfg.Path, listing.Visible(configs.Similar(label, known))))
		}
	}
	return unknown
}

// tellUnserved says that no launcher that runs takes a request that was just made.
func tellUnserved(ctx context.Context, a *app.App, store *zkmodel.Store, r *zkmodel.Request) {
	pools, err := store.Components(ctx, zkmodel.KindPool)
	if err != nil {
		fmt.Fprintln(a.Stderr, "poolkeeper: cannot tell who serves the request:", listing.Visible(err.Error()))
		return
	}
	switch v := (requestView{request: r, pools: pools}); {
	case !v.served():
		fmt.Fprintf(a.Stderr, "poolkeeper: request %s waits: %s\n", r.ID, listing.Visible(v.obstacle()))
	case zkmodel.WaitsForProvider(pools, r) != "":
		fmt.Fprintf(a.Stderr, "poolkeeper: request %s waits: %s\n", r.ID, listing.Visible(zkmodel.WaitsForProvider(pools, r)))
	}
}

// served reports whether a launcher that runs has a pool with all labels of the request.
func (v requestView) served() bool {
	return slices.ContainsFunc(v.pools, func(c *zkmodel.Component) bool {
		return c.State == zkmodel.ComponentRunning &&
			!slices.ContainsFunc(v.request.NodeTypes, func(label string) bool { return !slices.Contains(c.SupportedLabels, label) })
	})
}

// machines are the nodes that are made for a request.
func (v requestView) machines() string {
	var text strings.Builder
	for _, n := range v.nodes {
		if n.AllocatedTo != v.request.ID {
			continue
		}
		fmt.Fprintf(&text, "; node %s at %s is %s", n.ID, n.Provider, n.State)
		if machine := n.ExternalID.Text(); machine != "" {
			fmt.Fprintf(&text, ", machine %s", machine)
		}
		if n.InterfaceIP != "" {
			fmt.Fprintf(&text, ", address %s", n.InterfaceIP)
		}
		if n.Reason != "" {
			fmt.Fprintf(&text, ": %s", n.Reason)
		}
	}
	return text.String()
}

// imageOf is an image that a pool boots a label from.
type imageOf struct{ provider, image string }

// imagesFor are the images, of which one has to be ready before a node of the label can
// be launched. It is empty where no image of ours is needed, or where the configuration
// does not tell.
func imagesFor(cfg *configs.Config, label, provider string) []imageOf {
	var all []imageOf
	for _, p := range cfg.Providers {
		if provider != "" && p.Name != provider {
			continue
		}
		for _, pool := range p.Pools {
			for _, l := range pool.Labels {
				switch {
				case l.Name != label:
				case l.DiskImage == "":
					return nil
				default:
					all = append(all, imageOf{p.Name, l.DiskImage})
				}
			}
		}
	}
	return all
}

// missingImage says what stands between a label and its first node; "" is nothing.
func missingImage(label string, wanted []imageOf, image func(string) *zkmodel.Image, hindrance string) string {
	told := ""
	for _, w := range wanted {
		state := imageState(image(w.image), w.provider)
		if state == "" {
			return ""
		}
		told = cmp.Or(told, fmt.Sprintf("no image for %s is ready yet; image %s: %s", label, w.image, state))
	}
	if told != "" {
		told = words(told, hindrance)
	}
	return told
}

// words joins what there is to say.
func words(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// noProvider says which providers of images a builder cannot use, and why.
func noProvider(wanted []imageOf, builders []*zkmodel.Component) string {
	var told []string
	for _, w := range wanted {
		for _, b := range builders {
			if why := b.Troubles[w.provider]; why != "" {
				told = append(told, fmt.Sprintf("the builder on %s cannot use provider %s: %s", b.Hostname, w.provider, why))
			}
		}
	}
	return words(told...)
}

// imageState is how far the newest build of an image has come on its way to a provider;
// "" is that the provider has a ready one.
func imageState(image *zkmodel.Image, provider string) string {
	state := "no build has begun"
	for _, b := range image.Builds {
		switch b.State {
		case zkmodel.BuildFailed:
			state = fmt.Sprintf("build %s failed: %s", b.ID, b.Reason)
		case zkmodel.BuildBuilding, zkmodel.BuildReady, zkmodel.BuildDeleting:
			state = fmt.Sprintf("build %s is %s", b.ID, b.State)
		}
		for _, u := range b.Uploads {
			switch {
			case u.Provider != provider:
			case u.State == zkmodel.UploadReady:
				return ""
			case u.State == zkmodel.UploadFailed:
				state = fmt.Sprintf("upload %s of build %s to %s failed: %s", u.ID, b.ID, provider, u.Reason)
			default:
				state = fmt.Sprintf("upload %s of build %s to %s is %s", u.ID, b.ID, provider, u.State)
			}
		}
	}
	if image.Paused {
		state += "; it is paused"
	}
	return state
}
