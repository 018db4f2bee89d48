// Package secret has the commands about sealed values. They work on files alone.
package secret

import (
	"context"
	"errors"
	"fmt"
	"os"

	"poolkeeper/configs"
	"poolkeeper/configs/sealed"
)

// Cmd are the commands about sealed values. None asks ZooKeeper for anything.
type Cmd struct {
	Key string `placeholder:"FILE" help:"The key file. Without it, the one that the secure file (-s) names as secret-key."`

	Keygen KeygenCmd `cmd:"" help:"Make a key, and print its public half."`
	Set    SetCmd    `cmd:"" help:"Seal a value, and write it into a file."`
	List   ListCmd   `cmd:"" help:"List the sealed values of files, and the keys that they are sealed to."`
	Rotate RotateCmd `cmd:"" help:"Make a new key, and seal the values of files anew with it."`
	Reseal ResealCmd `cmd:"" help:"Seal the values of files anew that are not sealed to the newest key."`
}

// errNoKeyFile: nobody says which key file.
var errNoKeyFile = errors.New("no key file: give --key FILE, or -s and a secure file that names secret-key")

// file is the path of the key file.
func (c *Cmd) file(a *App) (string, error) {
	if c.Key != "" {
		return c.Key, nil
	}
	if a.Secure == "" {
		return "", errNoKeyFile
	}
	file, err := configs.SecretKey(a.Secure)
	if err == nil && file == "" {
		err = fmt.Errorf("%s: %w", a.Secure, errNoKeyFile)
	}
	return file, err
}

// keys are those of the key file.
func (c *Cmd) keys(a *App) (*sealed.Keys, error) {
	file, err := c.file(a)
	if err != nil {
		return nil, err
	}
	return sealed.Read(file)
}

// lockedKeys are the keys, read while other commands are kept from the key file and from files.
func (c *Cmd) lockedKeys(ctx context.Context, a *App, files ...string) (*sealed.Keys, func(), error) {
	file, err := c.file(a)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := a.lockFolders(ctx, append(files, file)...)
	if err != nil {
		return nil, nil, err
	}
	keys, err := sealed.Read(file)
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return keys, unlock, nil
}

// hasPrepared is where a command has read all and written nothing.
func (a *App) hasPrepared() {
	if a.prepared != nil {
		a.prepared()
	}
}

// KeygenCmd makes the key of a fleet.
type KeygenCmd struct {
	File string `arg:"" help:"The key file to make; there must be none."`
}

// Help is what the command's own help says.
func (KeygenCmd) Help() string {
	return "The file is for the daemons' user alone (mode 0600). Copy it to every host whose daemons shall read sealed " +
		"values, and name it there in the secure file: secret-key: FILE. What is printed is public: with it " +
		"anybody can seal values (secret set --to), and nobody can read them."
}

// Run is the command.
func (c KeygenCmd) Run(a *App) error {
	keys, err := sealed.New(c.File)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make key file: %w", err)
	}
	_, err = f.Write(keys.Bytes())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("write key file: %w", err), os.Remove(c.File))
	}
	_, err = fmt.Fprintln(a.Stdout, keys.Recipients()[0])
	return err
}
