package app

import (
	"context"
	"fmt"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/action"
)

// HaltFlags are what every pause and hold takes.
type HaltFlags struct {
	For    Length `name:"for" placeholder:"TIME" help:"How long, such as 2h; until it is taken back by default."`
	Reason string `help:"Why, for those who see it."`
}

// TellUnended says that nobody runs who would end what has a time.
func (f HaltFlags) TellUnended(ctx context.Context, a *App, store *zkmodel.Store) {
	if text := action.Unended(ctx, store, f.For.Duration()); text != "" {
		fmt.Fprintln(a.Stderr, "poolkeeper:", text)
	}
}

// Length is how long a pause or hold lasts; 0, which nobody can type, is until it is taken back.
type Length time.Duration

// UnmarshalText implements encoding.TextUnmarshaler, by which flags are parsed.
func (l *Length) UnmarshalText(text []byte) error {
	d, err := action.ParseFor(string(text))
	*l = Length(d)
	return err
}

// String is what was typed; "" is nothing.
func (l Length) String() string {
	if l == 0 {
		return ""
	}
	return time.Duration(l).String()
}

// Duration is it as all else has it.
func (l Length) Duration() time.Duration { return time.Duration(l) }
