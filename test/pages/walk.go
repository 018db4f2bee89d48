package pages

import (
	"fmt"
	"regexp"
	"strings"
)

// Walk is what a person does from one page.
type Walk struct {
	Files    map[string]string // made first, in the folder where the lines run
	Commands []Command
	// Answers are what must stand in what a line prints: the line's beginning, and
	// a regular expression of grep -E.
	Answers map[string]string
}

// ready is what a program that runs until Ctrl-C says when it works.
var ready = map[string]string{
	"builder": "Started: daemon=builder", "launcher": "Serving requests", "dev": "Ctrl-C ends it.",
}

// daemon matches a line that runs until Ctrl-C.
var daemon = regexp.MustCompile(`(?:^|[ /])poolkeeper (?:.* )?(builder|launcher|dev)(?: \$\w+)?'?$`) // behind it what a unit takes from its environment

// preamble are the words that a walk's script is made of. The script is root's; as
// USER runs a line as the walk's user would type it, in its folder.
const preamble = `set -muo pipefail # -m: what runs in the background heeds SIGINT
failed() {
  echo "FAILED: $1"; for log in /tmp/walk/*.log; do echo "--- $log"; tail -n 25 "$log"; done
  for log in /var/log/poolkeeper/*.log; do echo "--- $log"; tail -n 15 "$log"; done; exit 1
}
# as ends in the program itself, so that a signal reaches that: it wants a subshell.
as() {
  local user=$1 home; home=$(getent passwd "$user" | cut -d: -f6); shift
  exec setpriv --reuid="$user" --regid="$(id -g "$user")" --init-groups -- \
    env -i HOME="$home" USER="$user" LOGNAME="$user" TERM=dumb GOTOOLCHAIN=local GOFLAGS=-buildvcs=false \
    GOPROXY="$GOPROXY" GOCACHE=/opt/compiled PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin" "$@"
}
# run USER LINE ANSWER
run() {
  echo "==> $1: $2"
  (as "$1" timeout -k 5 1200 bash -c "cd '$folder' && $2") >/tmp/walk/out.log 2>&1 </dev/null || failed "$2: exit status $?, 124 after 20 minutes"
  cat /tmp/walk/out.log
  [ -z "$3" ] || grep -qE "$3" /tmp/walk/out.log || failed "$2: no $3 in what it prints"
}
pids=() names=()
# background USER LINE READY
background() {
  echo "==> $1: $2"
  local log="/tmp/walk/${#pids[@]}.log"
  (as "$1" bash -c "cd '$folder' && exec $2") >"$log" 2>&1 </dev/null &
  pids+=($!) names+=("$2")
  for _ in $(seq 6000); do
    ! grep -qF "$3" "$log" || return 0
    kill -0 "${pids[-1]}" 2>/dev/null || failed "$2"
    sleep 0.1
  done
  failed "$2: it never said $3"
}
stop() {
  local i; for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
    kill -INT "${pids[i]}"; wait "${pids[i]}" || failed "${names[i]}: it ended badly after Ctrl-C"
    echo "==> stopped: ${names[i]}"
  done
  pids=() names=()
}
mkdir -p /tmp/walk; rm -f /tmp/walk/*
`

// Script is the walk of user in folder, for bash.
func (w Walk) Script(user, folder string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%sfolder=%s\n", preamble, quote(folder))
	for name, text := range w.Files {
		fmt.Fprintf(&out, "printf %%s %s | (as %s tee %s >/dev/null)\n", quote(text), user, quote(folder+"/"+name))
	}
	developing := false
	for _, c := range w.Commands {
		who := user
		if c.Root {
			who = "root"
		}
		bare := c.Bare()
		if strings.HasPrefix(bare, "scripts/zookeeper stop") || developing && !strings.HasPrefix(bare, "bin/poolkeeper ") {
			out.WriteString("stop\n")
			developing = false
		}
		if m := daemon.FindStringSubmatch(bare); m != nil {
			fmt.Fprintf(&out, "background %s %s %s\n", who, quote(c.Text), quote(ready[m[1]]))
			if developing = m[1] == "dev"; developing {
				out.WriteString(printedByDev)
			}
			continue
		}
		fmt.Fprintf(&out, "run %s %s %s\n", who, quote(c.Text), quote(w.answer(bare)))
	}
	out.WriteString("stop\necho 'ALL DONE'\n")
	return strings.ReplaceAll(out.String(), "$WALKER", user)
}

// printedByDev runs the lines that dev tells people to type, NODE being the one that
// its request names.
const printedByDev = `node=NODE
while read -r line; do
  run $WALKER "${line//NODE/$node}$( [[ $line != *" ssh "* ]] || echo ' uname -a')" "$([[ $line != *" ssh "* ]] || echo '^Linux ')"
  [[ $line != *" request "* ]] || node=$(grep -oE '^[0-9]{10}' /tmp/walk/out.log | head -n 1)
done < <(sed -n '/^In another terminal:/,/^$/ s/^  //p' "/tmp/walk/$((${#pids[@]} - 1)).log")
[ "$node" != NODE ] || failed "dev printed no line that asks for a node"
`

func (w Walk) answer(command string) string {
	for beginning, answer := range w.Answers {
		if strings.HasPrefix(command, beginning) {
			return answer
		}
	}
	return ""
}

// quote makes one word of bash.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
