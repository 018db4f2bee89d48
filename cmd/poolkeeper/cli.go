package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/alecthomas/kong"

	"poolkeeper/cmd/poolkeeper/admin"
	"poolkeeper/cmd/poolkeeper/agent"
	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/doctor"
	"poolkeeper/cmd/poolkeeper/images"
	"poolkeeper/cmd/poolkeeper/manual"
	"poolkeeper/cmd/poolkeeper/nodes"
	"poolkeeper/cmd/poolkeeper/secret"
	"poolkeeper/zkmodel/listing"
)

// Exit codes, those of Nodepool's commands; others are documented in docs/exit-codes.md.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	// exitConfig is a daemon's that cannot use its configuration, as sysexits.h
	// and systemd number it. A unit need not start it again and again.
	exitConfig = 78
)

// cli is the whole command line.
type cli struct {
	app.Flags

	Builder  builderCmd        `cmd:"" group:"daemons" help:"Build images and upload them."`
	Launcher agent.LauncherCmd `cmd:"" group:"daemons" help:"Launch nodes for requests."`
	Dev      agent.DevCmd      `cmd:"" group:"daemons" help:"Run everything on this machine, ZooKeeper included, to try it out."`

	ImageBuild     images.ImageBuildCmd     `cmd:"" group:"images" help:"Ask for a build of an image."`
	ImageList      images.ImageListCmd      `cmd:"" group:"images" help:"List the images in the clouds."`
	DIBImageList   images.DIBImageListCmd   `cmd:"" name:"dib-image-list" group:"images" help:"List the builds of images."`
	ImageStatus    images.ImageStatusCmd    `cmd:"" group:"images" help:"List what is paused and what is asked for."`
	ImageDelete    images.ImageDeleteCmd    `cmd:"" group:"images" help:"Delete an image from a cloud."`
	DIBImageDelete images.DIBImageDeleteCmd `cmd:"" name:"dib-image-delete" group:"images" help:"Delete a build, its files and its images in all clouds."`
	ImagePause     images.ImagePauseCmd     `cmd:"" group:"images" help:"Stop building an image."`
	ImageUnpause   images.ImageUnpauseCmd   `cmd:"" group:"images" help:"Build an image again."`

	ImageRollback images.ImageRollbackCmd `cmd:"" group:"images" help:"Take an image back to the build before, at once."`
	ImageReject   images.ImageRejectCmd   `cmd:"" group:"images" help:"Say that a build is not to serve."`
	ImagePromote  images.ImagePromoteCmd  `cmd:"" group:"images" help:"Let a build serve again that was rolled back or rejected."`

	Explain          images.ExplainCmd          `cmd:"" group:"images" help:"Show the state of images' builds and uploads, and the rule that decides it."`
	ImageBuildCancel images.ImageBuildCancelCmd `cmd:"" group:"images" help:"Give up the build of an image that is under way, or withdraw the request for one."`
	BuildLog         images.BuildLogCmd         `cmd:"" group:"images" help:"Print the log of a build, from the builder that has it."`

	Wave images.WaveCmd `cmd:"" group:"images" help:"Have many images built anew, together."`

	List           nodes.ListCmd           `cmd:"" group:"nodes" help:"List the nodes."`
	RequestList    nodes.RequestListCmd    `cmd:"" group:"nodes" help:"List the node requests."`
	Request        nodes.RequestCmd        `cmd:"" group:"nodes" help:"Ask for nodes."`
	RequestDel     nodes.RequestDeleteCmd  `cmd:"" name:"request-delete" group:"nodes" help:"Give up node requests."`
	Hold           nodes.HoldCmd           `cmd:"" group:"nodes" help:"Keep a node for a person to look at."`
	NodeDelete     nodes.NodeDeleteCmd     `cmd:"" aliases:"delete" group:"nodes" help:"Delete nodes."`
	ProviderPause  nodes.ProviderPauseCmd  `cmd:"" group:"nodes" help:"Begin nothing in a provider: its cloud is maintained."`
	ProviderDrain  nodes.ProviderDrainCmd  `cmd:"" group:"nodes" help:"Begin nothing in a provider, and delete its idle nodes."`
	ProviderResume nodes.ProviderResumeCmd `cmd:"" group:"nodes" help:"End the pause of a provider."`
	RequestExplain nodes.RequestExplainCmd `cmd:"" group:"nodes" help:"Tell where a node request stands, why, and what happens next."`
	NodeExplain    nodes.NodeExplainCmd    `cmd:"" group:"nodes" help:"Tell what a node was booted from, who has it, and what happens next."`
	SSH            nodes.SSHCmd            `cmd:"" name:"ssh" group:"nodes" help:"Open a shell on a node."`

	AlienImageList admin.AlienImageListCmd `cmd:"" group:"misc" help:"List the images in clouds that are marked as ours and of which no ready upload has a record."`

	Info  admin.InfoCmd  `cmd:"" group:"misc" help:"Show the uploads and nodes that the tree has of a provider."`
	Erase admin.EraseCmd `cmd:"" group:"misc" help:"Forget the records of a provider that nobody serves any more."`

	ExportImageData admin.ExportImageDataCmd `cmd:"" group:"misc" help:"Write the records of images into a file, as a backup."`
	ImportImageData admin.ImportImageDataCmd `cmd:"" group:"misc" help:"Bring the records of images back from such a file."`

	Backup  admin.BackupCmd  `cmd:"" group:"misc" help:"Write what of the tree nobody can make again into a file."`
	Restore admin.RestoreCmd `cmd:"" group:"misc" help:"Bring such a backup back."`

	BuildGuard agent.BuildGuardCmd `cmd:"" name:"build-guard" hidden:""` // dib.GuardCommand

	Status admin.StatusCmd `cmd:"" group:"misc" help:"Show on one screen how the site is, and what needs attention."`

	Doctor doctor.Cmd `cmd:"" group:"misc" help:"Look for what is wrong with this host, ZooKeeper, the clouds and the configuration, and say what helps."`

	Daemon         admin.DaemonCmd           `cmd:"" group:"misc" help:"See what the running daemons do for all, and tell them something."`
	ConfigCmd      admin.ConfigCmd           `cmd:"" name:"config" group:"misc" help:"Push one configuration to all hosts of the fleet, and see who runs which."`
	Events         admin.EventsCmd           `cmd:"" group:"misc" help:"Print the events of a site, or follow them."`
	Ltime          admin.LtimeCmd            `cmd:"" group:"misc" help:"Print a logical time, which a listing can be asked to have seen."`
	ConfigValidate admin.ConfigValidateCmd   `cmd:"" group:"misc" help:"Check the configuration."`
	ConfigShow     admin.ConfigShowCmd       `cmd:"" group:"misc" help:"Show the configuration as it counts on this host, with where each value comes from; secrets are masked."`
	ConfigAccept   admin.ConfigAcceptCmd     `cmd:"" name:"config-accept" group:"misc" help:"Accept what a changed configuration drops or raises although it is in use or may be misspelt, on all hosts."`
	Token          admin.TokenCmd            `cmd:"" group:"misc" help:"Make tokens for those who may do something on the pages."`
	Secret         secret.Cmd                `cmd:"" group:"misc" help:"Seal values of the configuration, so that only hosts with the key can read them."`
	ElementsInst   images.ElementsInstallCmd `cmd:"" name:"elements-install" group:"misc" help:"Write the diskimage-builder elements that come with the program into a folder."`
	Completion     manual.CompletionCmd      `cmd:"" model:"all" group:"misc" help:"Print the completion of commands and flags for a shell."`
	Man            manual.ManCmd             `cmd:"" model:"all" group:"misc" help:"Write the man pages."`
	VersionCmd     versionCmd                `cmd:"" name:"version" group:"misc" help:"Print the version."`
}

// groups are the headings of the help.
var groups = []kong.Group{
	{Key: "daemons", Title: "Daemons"},
	{Key: "images", Title: "Images"},
	{Key: "nodes", Title: "Nodes"},
	{Key: "misc", Title: "And"},
}

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	code := exitDone
	if len(args) == 0 {
		args, code = []string{"--help"}, exitFailed
	}
	command, err := parse(args, stdout, stderr)
	switch {
	case err != nil:
		complain(stderr, err, exitUsage)
		fmt.Fprintln(stderr, `Run "poolkeeper --help" for the commands, "poolkeeper COMMAND --help" for one.`)
		return exitUsage
	case command.printed:
		return code
	}
	command.BindTo(ctx, (*context.Context)(nil))
	a := &app.App{Flags: command.flags, Stdin: os.Stdin, Stdout: stdout, Stderr: stderr}
	command.Bind(ofSecrets(a))
	if err := a.Secrets.Error(command.Run(a)); err != nil {
		if code, ok := errors.AsType[app.ExitCode](err); ok {
			return int(code)
		}
		if errors.Is(err, app.ErrConfig) {
			return complain(stderr, err, exitConfig)
		}
		return complain(stderr, err, exitFailed)
	}
	return exitDone
}

// complain prints an error, a line for each thing that is wrong.
func complain(stderr io.Writer, err error, code int) int {
	for line := range strings.SplitSeq(strings.TrimSpace(listing.Visible(err.Error())), "\n") {
		fmt.Fprintln(stderr, "poolkeeper:", line)
	}
	return code
}

// versionText is what `poolkeeper version` prints.
func versionText() string {
	return fmt.Sprintf("poolkeeper %s (%s, %s/%s)", app.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// versionCmd prints the version.
type versionCmd struct{}

// Run is the command.
func (versionCmd) Run(a *app.App) error {
	_, err := fmt.Fprintln(a.Stdout, versionText())
	return err
}

// builderCmd runs the builder, or tells what it would do.
type builderCmd struct {
	agent.BuilderCmd
	DryRun bool `help:"Print what this builder would do now, and do nothing."`
}

// Run is the command.
func (c builderCmd) Run(ctx context.Context, a *app.App) error {
	if c.DryRun {
		return images.DryRun(ctx, a)
	}
	return c.BuilderCmd.Run(ctx, a)
}
