package admin

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
)

// TokenCmd are the commands about tokens for the pages.
type TokenCmd struct {
	Create TokenCreateCmd `cmd:"" help:"Make a token, and print it, once, with its entry for the configuration."`
}

// TokenCreateCmd makes a token.
type TokenCreateCmd struct {
	May  string `enum:"read,operate,destroy" default:"operate" help:"What the one who has it may do: read, operate or destroy (${default})."`
	Name string `arg:"" help:"Who is to have it. That is who is shown to have done what is done with it."`
}

// Help is what the command's own help says.
func (*TokenCreateCmd) Help() string {
	return "Nothing keeps the token but what you do with it: the configuration has its hash alone. It works once the daemons have read a configuration with the entry; " +
		"without the entry it opens nothing any more."
}

// Run is the command.
func (c TokenCreateCmd) Run(a *app.App) error {
	if err := configs.CheckName("token", c.Name); err != nil {
		return err
	}
	data := make([]byte, 32)
	if _, err := rand.Read(data); err != nil {
		return fmt.Errorf("make token: %w", err)
	}
	token := "pkt_" + base64.RawURLEncoding.EncodeToString(data)
	_, err := fmt.Fprintf(a.Stdout, "# The token of %s, which is shown this once: %s\nwebapp:\n  tokens:\n    - name: %q\n      hash: %s\n      may: %s\n",
		c.Name, token, c.Name, configs.TokenHash(token), c.May)
	return err
}
