package main

import (
	"context"
	"errors"
)

type builderCmd struct{}

func (builderCmd) Run(ctx context.Context, a *app) error { return errors.New("later") }

type launcherCmd struct{}

func (launcherCmd) Run(ctx context.Context, a *app) error { return errors.New("later") }

type devCmd struct{}

func (devCmd) Run(ctx context.Context, a *app) error { return errors.New("later") }
