# Part of test/openstack/stack: where things are.
# shellcheck shell=bash disable=SC2034  # used by the other parts

readonly host=127.0.0.1
# The ports follow each other from one that is chosen when DIR is new.
choose_base() {
  local base port
  for ((base = 15000; base < 32000; base += 20)); do
    for ((port = base; port < base + 9; port++)); do
      ! (exec 3<>"/dev/tcp/$host/$port") 2>/dev/null || continue 2
    done
    echo $base
    return
  done
}
[ -s "$dir/base" ] || choose_base >"$dir/base"
base=$(<"$dir/base")
readonly base keystone_port=$base glance_port=$((base + 1)) nova_port=$((base + 2)) placement_port=$((base + 3))
readonly neutron_port=$((base + 4)) mariadb_port=$((base + 5)) rabbit_port=$((base + 6)) epmd_port=$((base + 7))
readonly rabbit_dist_port=$((base + 8))
readonly region=RegionOne
readonly compute_host=fake-compute-1
# Reachable from this host only, and known to everybody who reads this.
readonly password=loopback-only

readonly etc=$dir/etc log=$dir/log pid=$dir/pid state=$dir/state
readonly python=$dir/python # our own modules
readonly root=$dir/root     # files of Debian's service packages

# A clean environment: Debian's Python, no proxies for loopback, a private HOME.
readonly callers_path=$PATH
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive
unset PYTHONHOME PYTHONPATH PYTHONSTARTUP http_proxy https_proxy HTTP_PROXY HTTPS_PROXY
for variable in "${!OS_@}"; do unset "$variable"; done
export no_proxy=127.0.0.1,localhost NO_PROXY=127.0.0.1,localhost PYTHONWARNINGS=ignore

readonly started=$EPOCHREALTIME

say() { printf 'openstack: %6.1f s  %s\n' "$(awk -v a="$started" -v b="$EPOCHREALTIME" 'BEGIN {print b-a}')" "$*"; }

fail() {
  printf 'openstack: %s\n' "$*" >&2
  exit 1
}
