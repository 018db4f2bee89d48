# Part of test/openstack/stack: Debian's packages.
# shellcheck shell=bash

readonly packages=(
  python3-keystone python3-glance python3-nova python3-neutron python3-placement
  python3-openstackclient python3-openstacksdk python3-pymysql uwsgi-core uwsgi-plugin-python3
  rabbitmq-server mariadb-server-core mariadb-client-core qemu-utils curl iproute2 procps openssh-client
)
# Only their files are used: paste.ini, start scripts.
readonly unpacked=(nova-common nova-api nova-conductor nova-scheduler nova-compute glance-common glance-api neutron-common)

install_packages() {
  local missing=() p
  for p in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null || true)" = installed ] || missing+=("$p")
  done
  [ ${#missing[@]} -gt 0 ] || [ ! -e "$root/.complete" ] || return 0
  [ "${STACK_INSTALL:-1}" = 1 ] || fail "missing packages: ${missing[*]} (STACK_INSTALL=0)"
  [ ${#missing[@]} = 0 ] || [ "$(id -u)" = 0 ] || fail "root is needed to install ${missing[*]}"
  # Always: on a fresh host the lists may name files that are long gone.
  apt-get -q -o DPkg::Lock::Timeout=900 -o Acquire::Retries=3 update >>"$log/apt.log" 2>&1 || true
  if [ ${#missing[@]} -gt 0 ]; then
    say "installing ${#missing[@]} packages and what they need"
    without_services apt-get -q -y -o DPkg::Lock::Timeout=900 -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold \
      -o Acquire::Retries=3 --no-install-recommends install "${missing[@]}" >>"$log/apt.log" 2>&1 ||
      fail "apt-get failed, see $log/apt.log"
  fi
  unpack_services
}

# without_services runs a command while packages must not start their services.
without_services() {
  local policy=/usr/sbin/policy-rc.d ours=0 rc=0
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod 755 $policy
    ours=1
  fi
  "$@" || rc=$?
  [ $ours = 0 ] || rm -f $policy
  return $rc
}

# unpack_services unpacks the service packages, in the version of the libraries
# if the archive still has it.
unpack_services() {
  local p wanted=() debs=$dir/debs
  local get=(apt-get -q -o APT::Sandbox::User=root -o Acquire::Retries=3 download)
  say "unpacking the service packages"
  rm -rf "$root" "$debs"
  mkdir -p "$root" "$debs"
  for p in "${unpacked[@]}"; do
    wanted+=("$p=$(dpkg-query -W -f='${Version}' "python3-${p%%-*}")")
  done
  (cd "$debs" && { "${get[@]}" "${wanted[@]}" || "${get[@]}" "${unpacked[@]}"; }) >>"$log/apt.log" 2>&1 ||
    fail "apt-get download failed, see $log/apt.log"
  for p in "$debs"/*.deb; do dpkg-deb -x "$p" "$root"; done
  rm -rf "$debs"
  touch "$root/.complete"
}
