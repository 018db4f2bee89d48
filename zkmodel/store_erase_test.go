package zkmodel_test

import (
	"slices"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// Two providers that are gone are erased, and told once each, also where the answer to the
// first transaction is lost, or what was learned of a provider goes before it. Mistakes: an
// erasure that ends there, with half of the records left or none of them; one that is told
// again as it is repeated.
func TestErasureGoesOn(t *testing.T) {
	t.Parallel()
	ctx, root := t.Context(), zktest.Root(t)
	proxy := zktest.StartProxy(t, zktest.Shared(t).Addr())
	at := func(addr string) *recipe.Client {
		client, err := recipe.Dial(recipe.Config{Servers: []string{addr}, Chroot: root, Timeout: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		return client
	}
	client := at(proxy.Addr())
	log := recipe.NewLog(event.Root, "/tester")
	client.SetLog(log)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := client.Session(ctx)
	check(err)
	other, err := at(zktest.Shared(t).Addr()).Session(ctx)
	check(err)
	gone := func(path string) bool {
		_, there, err := other.Exists(ctx, path)
		return err == nil && !there
	}
	for n, provider := range []string{"east", "west"} {
		for _, path := range []string{
			zkmodel.LimitsPath(provider), zkmodel.FindingsPath(provider), zkmodel.LeakedMachinesPath(provider), zkmodel.BuildPath("debian", "0000000001"),
			zkmodel.UploadPath("debian", "0000000001", provider, "0000000001"), zkmodel.NodePath("000000000" + provider[:1]),
		} {
			if gone(path) {
				check(other.EnsurePath(ctx, path))
			}
		}
		for path, data := range map[string]string{
			zkmodel.BuildPath("debian", "0000000001"):                          `{"state": "ready"}`,
			zkmodel.UploadPath("debian", "0000000001", provider, "0000000001"): `{"state": "ready", "external_id": "img"}`,
			zkmodel.NodePath("000000000" + provider[:1]):                       `{"state": "ready", "provider": "` + provider + `", "state_time": 1}`,
		} {
			_, err := other.Set(ctx, path, []byte(data), recipe.AnyVersion)
			check(err)
		}
		asked := 0
		store := zkmodel.NewStore(s, func() time.Time { // the event is made, and then written
			switch asked++; {
			case asked > 1:
			case n == 0:
				check(other.Delete(ctx, zkmodel.FindingsPath(provider), recipe.AnyVersion))
			default:
				proxy.CutDown()
				go func() {
					zktest.Eventually(t, func() bool { return gone(zkmodel.LimitsPath(provider)) }, "the transaction to be applied")
					proxy.Break()
					proxy.Heal()
				}()
			}
			return time.Now()
		})
		h, err := store.Holdings(ctx, provider)
		check(err)
		check(store.Erase(ctx, h))
		if left, err := store.Holdings(ctx, provider); err != nil || !left.Empty() || !gone(zkmodel.LimitsPath(provider)) || !gone(zkmodel.FindingsPath(provider)) || !gone(zkmodel.LeakedMachinesPath(provider)) {
			t.Errorf("%s: left %+v (%v)", provider, left, err)
		}
	}
	var told []string
	reader := log.Read(s, recipe.LogPosition{})
	for {
		entry, more, err := reader.Poll(ctx)
		check(err)
		if !more {
			break
		}
		e, err := event.Of(entry)
		check(err)
		told = append(told, e.Type+" "+e.Subject)
	}
	if want := []string{event.ProviderErased + " provider/east", event.ProviderErased + " provider/west"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
