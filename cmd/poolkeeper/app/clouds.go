package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/configs/redact"
	"poolkeeper/providers"
	"poolkeeper/providers/drivers"
)

// How long a cloud is waited for that a person has asked about.
const (
	CloudCall  = 15 * time.Second // one call
	CloudRetry = 2 * time.Second  // a call that failed is tried again
)

// CheckClouds asks the clouds of a configuration, all at once, for what it names. It
// returns how many there are, and what ends of each provider; the error joins a configs.Finding
// for each thing that is not there, and for each cloud that cannot be asked.
func CheckClouds(ctx context.Context, cfg *configs.Config, log hclog.Logger, secrets *redact.Secrets) (int, map[string][]providers.End, error) {
	var mu sync.Mutex
	var found []*configs.Finding
	ends := map[string][]providers.End{}
	var group sync.WaitGroup
	asked := 0
	process := &drivers.Process{Logger: log, Secrets: secrets, CallTime: CloudCall, RetryTime: CloudRetry}
	for _, section := range cfg.Providers {
		if !drivers.Checks(section.Driver) {
			continue
		}
		asked++
		group.Go(func() {
			list, end := checkCloud(ctx, cfg, section, process)
			mu.Lock()
			defer mu.Unlock()
			found, ends[section.Name] = append(found, list...), end
		})
	}
	group.Wait()
	slices.SortStableFunc(found, func(a, b *configs.Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Message, b.Message))
	})
	found = slices.CompactFunc(found, func(a, b *configs.Finding) bool { return a.Error() == b.Error() }) // of labels that share their pool's
	var failed error
	for _, f := range found {
		failed = errors.Join(failed, f)
	}
	return asked, ends, failed
}

// checkCloud asks the cloud of one provider.
func checkCloud(ctx context.Context, cfg *configs.Config, section configs.Provider, process *drivers.Process) (list []*configs.Finding, ends []providers.End) {
	at := configs.Item("providers", section.Name)
	unreachable := func(err error) *configs.Finding {
		text := strings.ReplaceAll(process.Secrets.Error(err).Error(), "\n", "; ")
		return cfg.Finding("the cloud cannot be asked: "+text, at+".cloud", at+".profile-name", at+".context", at)
	}
	p, err := process.Open(section)
	if err != nil {
		return []*configs.Finding{unreachable(err)}, nil
	}
	defer func() { _ = p.Close() }() // it has nothing to say
	checker, ok := p.(providers.Checker)
	if !ok {
		return nil, nil
	}
	missing, err := checker.CheckCloud(ctx)
	for _, m := range missing {
		keys := make([]string, 0, len(m.Keys)+1)
		for _, key := range m.Keys {
			keys = append(keys, at+"."+key)
		}
		list = append(list, cfg.Finding(fmt.Sprintf("provider %s: %s", section.Name, m.Message), append(keys, at)...))
	}
	if err != nil {
		list = append(list, unreachable(err))
	}
	if ender, ok := p.(providers.Ender); ok {
		ends = ender.Ends()
	}
	return list, ends
}
