# Part of test/openstack/stack: where things are.
# shellcheck shell=bash disable=SC2034  # used by the other parts

readonly host=127.0.0.1
readonly keystone_port=${PORT_KEYSTONE:-15000}
readonly glance_port=${PORT_GLANCE:-19292}
readonly nova_port=${PORT_NOVA:-18774}
readonly placement_port=${PORT_PLACEMENT:-18778}
readonly neutron_port=${PORT_NEUTRON:-19696}
readonly mariadb_port=${PORT_MARIADB:-13306}
readonly rabbit_port=${PORT_RABBIT:-15672}
readonly epmd_port=${PORT_EPMD:-14369}
readonly rabbit_dist_port=${PORT_RABBIT_DIST:-25772}
readonly region=RegionOne
readonly compute_host=fake-compute-1
# Reachable from this host only, and known to everybody who reads this.
readonly password=loopback-only

readonly etc=$dir/etc log=$dir/log pid=$dir/pid state=$dir/state
readonly python=$dir/python # our own modules
readonly root=$dir/root     # files of Debian's service packages

# A clean environment: Debian's Python, no proxies for loopback, a private HOME.
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
