# Part of test/openstack/stack: Debian's packages.
# shellcheck shell=bash

# Only their files are used: paste.ini, start scripts.
readonly unpacked=(nova-common nova-api nova-conductor nova-scheduler nova-compute glance-common glance-api neutron-common)

install_packages() {
  PATH=$callers_path "$here/../../scripts/prerequisites" ${STACK_CHECK:+--check} openstack || fail "packages are missing"
  [ -e "$root/.complete" ] || unpack_services
}

# unpack_services unpacks the service packages, in the version of the libraries
# if the archive still has it.
unpack_services() {
  local p debs=$dir/debs
  say "unpacking the service packages"
  rm -rf "$root" "$debs"
  mkdir -p "$root" "$debs"
  # The lists may name files that are long gone.
  download "$debs" || { refresh && download "$debs"; } || fail "apt-get download failed, see $log/apt.log"
  for p in "$debs"/*.deb; do dpkg-deb -x "$p" "$root"; done
  rm -rf "$debs"
  touch "$root/.complete"
}

refresh() { apt-get -q -o DPkg::Lock::Timeout=900 -o Acquire::Retries=3 update >>"$log/apt.log" 2>&1; }

# download DIR gets the packages.
download() {
  local p wanted=() get=(apt-get -q -o APT::Sandbox::User=root -o Acquire::Retries=3 download)
  for p in "${unpacked[@]}"; do
    wanted+=("$p=$(dpkg-query -W -f='${Version}' "python3-${p%%-*}")")
  done
  (cd "$1" && { "${get[@]}" "${wanted[@]}" || "${get[@]}" "${unpacked[@]}"; }) >>"$log/apt.log" 2>&1
}
