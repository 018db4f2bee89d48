package nodes

import (
	"context"
	"fmt"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/action"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
)

// pausing is what can be said of a pause.
type pausing struct {
	Provider string `arg:"" help:"The provider, as the configuration has it."`
	app.HaltFlags
}

// ProviderPauseCmd has nothing begun in a provider.
type ProviderPauseCmd struct{ pausing }

// Help is what the command's own help says.
func (*ProviderPauseCmd) Help() string {
	return "For the maintenance of a cloud: no node is launched there, nobody is given one that is ready, and uploads wait. " +
		"Requests go to other providers, or wait. What is under way goes on, nodes in use stay, and what is to be deleted is deleted. " +
		"A launcher or builder of Nodepool's does not heed it."
}

// Run is the command.
func (c ProviderPauseCmd) Run(ctx context.Context, a *app.App) error {
	return a.Do(ctx, c.order("provider-pause"))
}

// order is what is to be done.
func (c pausing) order(name string) action.Order {
	return action.Order{Action: name, Provider: c.Provider, Reason: c.Reason, For: c.For.Duration()}
}

// ProviderDrainCmd has nothing begun in a provider, and its idle nodes deleted.
type ProviderDrainCmd struct {
	pausing
	Wait bool `help:"Wait until no node of the provider is left, but for those that are held."`
}

// Help is what the command's own help says.
func (*ProviderDrainCmd) Help() string {
	return "As provider-pause, and nodes that are ready and nobody's are deleted, too; machines of a static provider stay. With --wait the " +
		"command ends when the nodes that are in use have been given back and are deleted."
}

// Run is the command.
func (c ProviderDrainCmd) Run(ctx context.Context, a *app.App) error {
	order := c.order("provider-drain")
	if err := order.Check(); err != nil {
		return err
	}
	return a.WithClient(ctx, func(ctx context.Context, cfg *configs.Config, client *recipe.Client, store *zkmodel.Store) error {
		if err := a.Doer(cfg, store).Do(ctx, order); err != nil || !c.Wait {
			return err
		}
		w := follow(ctx, a, cfg, client)
		defer w.stop()
		return w.until(ctx, []*recipe.Subscription{w.mirror.SubscribeNodes(), w.mirror.SubscribePauses()}, func() (string, bool, error) {
			left := operate.InProvider(w.mirror.Nodes(), c.Provider)
			if len(left) == 0 {
				return "", true, nil
			}
			if !c.drained(w.mirror.ProviderPauses()) {
				return "", false, fmt.Errorf("provider %s is not drained any more, and nodes are left there (%s)", c.Provider, operate.StatesOf(left))
			}
			return fmt.Sprintf("nodes of %s are left: %s", c.Provider, operate.StatesOf(left)), false, nil
		})
	})
}

// drained reports whether the pause is still there that drains.
func (c pausing) drained(list []*zkmodel.ProviderPause) bool {
	for _, p := range list {
		if p.Provider == c.Provider {
			return p.Drain
		}
	}
	return false
}

// ProviderResumeCmd ends the pause of a provider.
type ProviderResumeCmd struct {
	Provider string `arg:"" help:"The provider."`
}

// Run is the command.
func (c ProviderResumeCmd) Run(ctx context.Context, a *app.App) error {
	return a.Do(ctx, action.Order{Action: "provider-resume", Provider: c.Provider})
}
