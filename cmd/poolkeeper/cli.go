package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"poolkeeper/cmd/poolkeeper/secret"
	"poolkeeper/zkmodel/listing"
)

// Exit codes, those of Nodepool's commands.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	// exitConfig is a daemon's that cannot use its configuration, as sysexits.h
	// and systemd number it. A unit need not start it again and again.
	exitConfig = 78
)

// exitCode ends the program in silence: that of a command on a node.
type exitCode int

// Error implements error.
func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// cli is the whole command line. Flags that stand here are accepted before and
// after the command.
type cli struct {
	Config     string           `short:"c" placeholder:"FILE" default:"/etc/nodepool/nodepool.yaml" help:"Configuration file (${default}); zk: is the one that was pushed to the fleet."`
	HostConfig string           `placeholder:"FILE" default:"/etc/nodepool/host.yaml" help:"With -c zk:, the file with what is this host's own (${default})."`
	Secure     string           `short:"s" placeholder:"FILE" help:"Configuration file with the secrets."`
	Debug      bool             `help:"Log what happens in detail."`
	LogJSON    bool             `name:"log-json" help:"Log one JSON object a line."`
	Wait       time.Duration    `name:"zookeeper-wait" default:"10s" help:"How long a command waits for ZooKeeper (${default})."`
	Version    kong.VersionFlag `help:"Print the version."`

	// Nodepool's, for the sake of units and scripts that carry them.
	LogConfig string `short:"l" hidden:""`

	Builder  builderCmd  `cmd:"" group:"daemons" help:"Build images and upload them."`
	Launcher launcherCmd `cmd:"" group:"daemons" help:"Launch nodes for requests."`
	Dev      devCmd      `cmd:"" group:"daemons" help:"Run everything on this machine, ZooKeeper included, to try it out."`

	ImageBuild     imageBuildCmd     `cmd:"" group:"images" help:"Ask for a build of an image."`
	ImageList      imageListCmd      `cmd:"" group:"images" help:"List the images in the clouds."`
	DIBImageList   dibImageListCmd   `cmd:"" name:"dib-image-list" group:"images" help:"List the builds of images."`
	ImageStatus    imageStatusCmd    `cmd:"" group:"images" help:"List what is paused and what is asked for."`
	ImageDelete    imageDeleteCmd    `cmd:"" group:"images" help:"Delete an image from a cloud."`
	DIBImageDelete dibImageDeleteCmd `cmd:"" name:"dib-image-delete" group:"images" help:"Delete a build, its files and its images in all clouds."`
	ImagePause     imagePauseCmd     `cmd:"" group:"images" help:"Stop building an image."`
	ImageUnpause   imageUnpauseCmd   `cmd:"" group:"images" help:"Build an image again."`

	ImageRollback imageRollbackCmd `cmd:"" group:"images" help:"Take an image back to the build before, at once."`
	ImageReject   imageRejectCmd   `cmd:"" group:"images" help:"Say that a build is not to serve."`
	ImagePromote  imagePromoteCmd  `cmd:"" group:"images" help:"Let a build serve again that was rolled back or rejected."`

	Explain          explainCmd          `cmd:"" group:"images" help:"Tell what the builder of this host does with images, and why."`
	ImageBuildCancel imageBuildCancelCmd `cmd:"" group:"images" help:"Give up the build of an image that is under way, or withdraw the request for one."`
	BuildLog         buildLogCmd         `cmd:"" group:"images" help:"Print the log of a build, from the builder that has it."`

	Wave waveCmd `cmd:"" group:"images" help:"Have many images built anew, together."`

	List        listCmd          `cmd:"" group:"nodes" help:"List the nodes."`
	RequestList requestListCmd   `cmd:"" group:"nodes" help:"List the node requests."`
	Request     requestCmd       `cmd:"" group:"nodes" help:"Ask for nodes."`
	RequestDel  requestDeleteCmd `cmd:"" name:"request-delete" group:"nodes" help:"Give up node requests."`
	Hold        holdCmd          `cmd:"" group:"nodes" help:"Keep a node for a person to look at."`
	NodeDelete  nodeDeleteCmd    `cmd:"" aliases:"delete" group:"nodes" help:"Delete nodes."`
	SSH         sshCmd           `cmd:"" name:"ssh" group:"nodes" help:"Open a shell on a node."`

	Erase eraseCmd `cmd:"" group:"misc" help:"Forget the records of a provider that nobody serves any more."`

	BuildGuard buildGuardCmd `cmd:"" name:"build-guard" hidden:""` // dib.GuardCommand

	Daemon         daemonCmd          `cmd:"" group:"misc" help:"See what the running daemons do for all, and tell them something."`
	ConfigCmd      configCmd          `cmd:"" name:"config" group:"misc" help:"Push one configuration to all hosts of the fleet, and see who runs which."`
	Events         eventsCmd          `cmd:"" group:"misc" help:"Print the events of a site, or follow them."`
	Ltime          ltimeCmd           `cmd:"" group:"misc" help:"Print a logical time, which a listing can be asked to have seen."`
	ConfigValidate configValidateCmd  `cmd:"" group:"misc" help:"Check the configuration."`
	ConfigAccept   configAcceptCmd    `cmd:"" name:"config-accept" group:"misc" help:"Accept what a changed configuration drops or raises although it is in use or may be misspelt, on all hosts."`
	Secret         secret.Cmd         `cmd:"" group:"misc" help:"Seal values of the configuration, so that only hosts with the key can read them."`
	ElementsInst   elementsInstallCmd `cmd:"" name:"elements-install" group:"misc" help:"Write the diskimage-builder elements that come with the program into a folder."`
	VersionCmd     versionCmd         `cmd:"" name:"version" group:"misc" help:"Print the version."`
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
	var flags cli
	printed := false // help or version, which is all that was asked for
	parser, err := kong.New(&flags,
		kong.Name("poolkeeper"),
		kong.Description("Builds machine images, uploads them to clouds and launches nodes from them."),
		kong.Vars{"version": versionText()},
		kong.ExplicitGroups(groups),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { printed = true }),
	)
	if err != nil { // a mistake in the tags above
		return complain(stderr, err, exitUsage)
	}
	if len(args) == 0 {
		_, _ = parser.Parse([]string{"--help"})
		return exitFailed
	}
	command, err := parser.Parse(args)
	switch {
	case printed:
		return exitDone
	case err != nil:
		complain(stderr, err, exitUsage)
		fmt.Fprintln(stderr, `Run "poolkeeper --help" for the commands, "poolkeeper COMMAND --help" for one.`)
		return exitUsage
	}
	command.BindTo(ctx, (*context.Context)(nil))
	a := &app{flags: &flags, stdin: os.Stdin, stdout: stdout, stderr: stderr}
	command.Bind(a.ofSecrets())
	if err := a.secrets.Error(command.Run(a)); err != nil {
		if code, ok := errors.AsType[exitCode](err); ok {
			return int(code)
		}
		if errors.Is(err, errConfig) {
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
	return fmt.Sprintf("poolkeeper %s (%s, %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// versionCmd prints the version.
type versionCmd struct{}

// Run is the command.
func (versionCmd) Run(a *app) error {
	_, err := fmt.Fprintln(a.stdout, versionText())
	return err
}
