package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"poolkeeper/builder/buildlog"
	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/terminal"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/action"
)

// BuildLogCmd prints the log of a build, wherever it was built.
type BuildLogCmd struct {
	Follow bool   `short:"f" help:"Go on until the build has ended."`
	ID     string `arg:"" help:"The build, as dib-image-list shows it: IMAGE-BUILDID."`

	token string // which the builder wants to see
}

// Run is the command.
func (c BuildLogCmd) Run(ctx context.Context, a *app.App) error {
	image, build, err := zkmodel.ParseBuildName(c.ID)
	if err != nil {
		return err
	}
	if err := errors.Join(configs.CheckName("image", image), configs.CheckName("build", build)); err != nil {
		return err
	}
	c.ID = image + "-" + build
	out := terminal.Safe(a.Stdout)
	var record *zkmodel.Build
	var local string
	err = a.Reads().WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		c.token = cfg.WebApp.Token
		local = buildlog.Path(cfg.BuildLogDir, image, build)
		record, err = begunBuild(ctx, store, image, build)
		if errors.Is(err, zkmodel.ErrNotFound) {
			if record, err = c.deletedBuild(ctx, store, local); record != nil || err != nil {
				return err
			}
			near := action.Near(ctx, store, cfg, action.Order{Image: image, Build: build})
			return errors.New("Build " + c.ID + " not found" + near) // Nodepool's words
		}
		return err
	})
	if err != nil {
		return err
	}
	served := strings.HasPrefix(record.Log, "http://") || strings.HasPrefix(record.Log, "https://")
	log, err := os.Open(local)
	switch {
	case served && (err != nil || c.Follow && record.State == zkmodel.BuildBuilding):
		return errors.Join(c.fetch(ctx, out, record), closeIfOpen(log))
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("build %s was made on %s, which does not serve its log; it should be in build-log-dir there", c.ID, record.Builder)
	case err != nil:
		return err
	case c.Follow && record.State == zkmodel.BuildBuilding:
		fmt.Fprintln(a.Stderr, "poolkeeper: the builder does not serve its log: this is what there is so far")
	}
	_, err = io.Copy(out, log)
	return errors.Join(err, log.Close())
}

// deletedBuild returns a record with the place of a log whose build has no record any more: in a file of this host, or
// at a builder that serves the log of any other build. It returns nil if the log is at none of them.
func (c BuildLogCmd) deletedBuild(ctx context.Context, store *zkmodel.Store, local string) (*zkmodel.Build, error) {
	if _, err := os.Stat(local); err == nil {
		return &zkmodel.Build{}, nil
	}
	all, err := store.Images(ctx)
	if err != nil {
		return nil, err
	}
	asked := map[string]bool{}
	for _, image := range all {
		for _, b := range image.Builds {
			folder, _, _ := strings.Cut(b.Log, "/log/")
			if asked[folder] || !strings.HasPrefix(folder, "http") {
				continue
			}
			asked[folder] = true
			record := &zkmodel.Build{Log: folder + "/log/" + c.ID, Builder: b.Builder}
			if err := c.fetch(ctx, io.Discard, record); err == nil {
				return record, nil
			}
		}
	}
	return nil, nil
}

// closeIfOpen closes a file that may be nil.
func closeIfOpen(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// begunBuild reads a build's record. That of one which has just begun says a
// moment later where its log is.
func begunBuild(ctx context.Context, store *zkmodel.Store, image, build string) (*zkmodel.Build, error) {
	patience := time.NewTimer(time.Second)
	defer patience.Stop()
	for {
		record, err := store.Build(ctx, image, build)
		if err != nil || record.Log != "" || record.State != zkmodel.BuildBuilding {
			return record, err
		}
		again := time.NewTimer(20 * time.Millisecond)
		select {
		case <-again.C:
		case <-patience.C:
			return record, nil // nobody serves it
		case <-ctx.Done():
			return record, context.Cause(ctx)
		}
	}
}

// fetch copies the log from the builder that has it. One that is followed, and
// breaks off, is gone on with where it broke off.
func (c BuildLogCmd) fetch(ctx context.Context, to io.Writer, record *zkmodel.Build) error {
	var offset int64
	for {
		n, err := c.fetchFrom(ctx, to, record, offset)
		offset += n
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return nil //nolint:nilerr // Ctrl-C is how one stops to follow
		case n == 0 || !c.Follow:
			return fmt.Errorf("read log of %s from %s: %w", c.ID, record.Builder, err)
		}
	}
}

// fetchFrom copies the log from an offset on, and returns how much that was.
func (c BuildLogCmd) fetchFrom(ctx context.Context, to io.Writer, record *zkmodel.Build, offset int64) (int64, error) {
	address := record.Log
	if c.Follow {
		address += "?follow=1&offset=" + strconv.FormatInt(offset, 10)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return 0, err
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	// A log that is followed takes as long as its build; the answer's head does not.
	transport := &http.Transport{ResponseHeaderTimeout: 10 * time.Second}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10)) // the status says enough
		return 0, fmt.Errorf("%s: %s", answer.Status, strings.TrimSpace(string(text)))
	}
	return io.Copy(to, answer.Body)
}
