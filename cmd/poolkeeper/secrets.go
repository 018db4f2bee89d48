package main

import (
	"context"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/secret"
	"poolkeeper/configs"
)

// ofSecrets is what the commands about sealed values get.
func ofSecrets(a *app.App) *secret.App {
	s := &secret.App{
		Config: a.Flags.Config, Secure: a.Flags.Secure,
		Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Secrets: &a.Secrets,
	}
	if a.OfFleet() {
		s.Fleet = func(ctx context.Context) (secret.Version, error) { return sealedVersion(ctx, a) }
	}
	return s
}

// sealedVersion is the fleet's configuration for who looks for sealed values in it.
func sealedVersion(ctx context.Context, a *app.App) (secret.Version, error) {
	k, err := a.OfferedVersion(ctx)
	if err != nil {
		return secret.Version{}, err
	}
	cfg, err := configs.Load(k.Version.Name(),
		configs.Options{SecurePath: a.Flags.Secure, HostPath: a.Flags.HostConfig, Text: k.Text, Keyless: true})
	if err != nil {
		return secret.Version{}, err
	}
	return secret.Version{Name: k.Version.Name(), Text: k.Text, Files: cfg.Files()}, nil
}
