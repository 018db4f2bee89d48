# Part of test/openstack/stack: starting, watching and stopping processes. A PID
# file holds the PID and when it began, because PIDs are used again.
# shellcheck shell=bash

began() { awk '{sub(/^.*\) /, ""); print $20}' "/proc/$1/stat" 2>/dev/null || true; }

# alive NAME tells whether the process that we started still runs.
alive() {
  local id since
  [ -s "$pid/$1.pid" ] && read -r id since <"$pid/$1.pid" || return 1
  [ -n "$id" ] && [ "$(began "$id")" = "$since" ] && ! grep -q '^State:[[:space:]]*Z' "/proc/$id/status"
}

# start NAME COMMAND... starts a process in a session of its own, so that its
# PID is also that of its group.
start() {
  local name=$1 id
  shift
  if alive "$name"; then return 0; fi
  [ ! -s "$log/$name.log" ] || mv -f "$log/$name.log" "$log/$name.log.1"
  (
    cd "$state"
    HOME=$dir/home exec setsid "$@" >"$log/$name.log" 2>&1 </dev/null 9>&-
  ) &
  id=$!
  sleep 0.05
  echo "$id $(began $id)" >"$pid/$name.pid"
}

# once NAME COMMAND... runs a command to its end.
once() {
  local name=$1
  shift
  (cd "$state" && HOME=$dir/home "$@" >"$log/$name.log" 2>&1 9>&-) || broken "$name" "failed"
}

broken() {
  tail -20 "$log/$1.log" >&2
  fail "$1 $2, see $log/$1.log"
}

# await NAME SECONDS WHAT COMMAND... waits until a command succeeds.
await() {
  local name=$1 limit=$2 what=$3 end
  shift 3
  end=$((SECONDS + limit))
  until "$@"; do
    alive "$name" || broken "$name" "exited"
    [ $SECONDS -lt $end ] || broken "$name" "is not there after $limit s: $what"
    sleep 0.2
  done
}

listens() { (exec 3<>"/dev/tcp/$host/$1") 2>/dev/null; }

answers() {
  case $(curl -s -o /dev/null -m 10 -w '%{http_code}' "$1" || true) in
    2* | 300 | 401) return 0 ;;
  esac
  return 1
}

await_port() { await "$1" "$3" "port $2" listens "$2"; }
await_http() { await "$1" "$3" "$2" answers "$2"; }

# port_is_free NAME PORT: somebody else's listener would be taken for ours.
port_is_free() {
  alive "$1" || ! listens "$2" || fail "port $2 ($1) is taken by something else"
}

group_alive() { ps -o stat= --sid "$1" 2>/dev/null | grep -qv '^Z'; }

# stop SECONDS NAME... ends processes and what is left of their groups.
stop() {
  local limit=$1 name id since end
  local -A left=()
  shift
  for name in "$@"; do
    [ -s "$pid/$name.pid" ] || continue
    read -r id since <"$pid/$name.pid"
    if [ -n "${since:-}" ] && [ "$(began "$id")" = "$since" ]; then
      kill -TERM "$id" 2>/dev/null || true
      left[$name]=$id
    else
      rm -f "$pid/$name.pid"
    fi
  done
  end=$((SECONDS + limit))
  while [ ${#left[@]} -gt 0 ]; do
    for name in "${!left[@]}"; do
      id=${left[$name]}
      if group_alive "$id"; then
        [ $SECONDS -ge $end ] || continue
        printf 'openstack: %s: killed after %s s\n' "$name" "$limit" >&2
        kill -KILL -- "-$id" 2>/dev/null || true
      fi
      rm -f "$pid/$name.pid"
      unset "left[$name]"
    done
    [ ${#left[@]} -eq 0 ] || sleep 0.1
  done
}
