# Part of test/openstack/stack: OpenStack's own services.
# shellcheck shell=bash

# uwsgi closes a connection after each answer without saying so; clients would
# use it again.
readonly uwsgi=(uwsgi --plugins python3 --master --lazy-apps --enable-threads --die-on-term --thunder-lock --need-app
  --no-orphans --buffer-size 65535 --post-buffering 65536 --disable-logging --add-header 'Connection: close')

start_service() {
  export PYTHONPATH=$python
  case $1 in
    keystone)
      port_is_free keystone "$keystone_port"
      start keystone env OS_KEYSTONE_CONFIG_DIR="$etc/keystone" "${uwsgi[@]}" --processes 2 \
        --http-socket "$host:$keystone_port" --wsgi-file /usr/bin/keystone-wsgi-public
      ;;
    placement)
      port_is_free placement "$placement_port"
      start placement env OS_PLACEMENT_CONFIG_DIR="$etc/placement" "${uwsgi[@]}" --processes 1 \
        --http-socket "$host:$placement_port" --wsgi-file /usr/bin/placement-api
      ;;
    neutron-server)
      port_is_free neutron-server "$neutron_port"
      start neutron-server "$root/usr/bin/neutron-server" \
        --config-file "$etc/neutron/neutron.conf" --config-file "$etc/neutron/ml2_conf.ini"
      ;;
    glance-api)
      port_is_free glance-api "$glance_port"
      start glance-api "$root/usr/bin/glance-api" \
        --config-file "$etc/glance/glance-api.conf" --config-file "$etc/glance/glance-image-import.conf"
      ;;
    nova-api)
      port_is_free nova-api "$nova_port"
      start nova-api "$root/usr/bin/nova-api" --config-file "$etc/nova/nova.conf"
      ;;
    nova-conductor | nova-scheduler) start "$1" "$root/usr/bin/$1" --config-file "$etc/nova/nova.conf" ;;
    nova-compute) start nova-compute "$python/nova-compute" --config-file "$etc/nova/nova.conf" ;;
    mariadb) start_mariadb ;;
    rabbitmq) start_rabbitmq ;;
    *) fail "there is no service $1" ;;
  esac
}

start_services() {
  await_port rabbitmq "$rabbit_port" 300
  start_service placement
  start_service neutron-server
  start_service glance-api
  # Nova's daemons log in and look placement up while they start, and exit if
  # they cannot.
  await_http keystone "http://$host:$keystone_port/v3" 300
  start_service nova-conductor
  start_service nova-scheduler
  start_service nova-api
  # Its first call to the conductor would be lost while there is no queue.
  await nova-conductor 300 "its queue" grep -q 'Starting conductor node' "$log/nova-conductor.log"
  start_service nova-compute
}

# provision STAGE makes users, catalog, flavors, networks … as an operator
# would, through the APIs.
provision() {
  once "provision-$1" env STACK_DIR="$dir" STACK_STATE="$state" STACK_PASSWORD="$password" STACK_REGION=$region \
    STACK_HOST=$host STACK_KEYSTONE="$keystone_port" STACK_GLANCE="$glance_port" STACK_NOVA="$nova_port" \
    STACK_PLACEMENT="$placement_port" STACK_NEUTRON="$neutron_port" \
    OS_CLIENT_CONFIG_FILE="$dir/clouds.yaml" /usr/bin/python3 "$here/stack.d/modules/provision.py" "$1"
}

# provision_identity does it again when the ports have changed.
provision_identity() {
  local stamp="$keystone_port $glance_port $nova_port $placement_port $neutron_port"
  [ "$(cat "$state/.identity" 2>/dev/null || true)" != "$stamp" ] || return 0
  await_http keystone "http://$host:$keystone_port/v3" 300
  provision identity
  echo "$stamp" >"$state/.identity"
}

provision_resources() {
  [ ! -e "$state/.resources" ] || return 0
  provision resources
  touch "$state/.resources"
  write_clouds # with the application credential
}

# nova_is_up tells whether every daemon has reported since we began.
nova_is_up() {
  local d n
  for d in nova-conductor nova-scheduler nova-compute; do
    alive $d || broken $d "exited"
  done
  n=$(sql -e "select count(*) from nova.services where deleted=0
    and \`binary\` in ('nova-conductor', 'nova-scheduler', 'nova-compute')
    and last_seen_up > utc_timestamp() - interval 10 second and last_seen_up > from_unixtime(${started%.*})")
  [ "$n" -ge 3 ]
}

discover_host() {
  [ "$(sql -e "select count(*) from nova_api.host_mappings where host='$compute_host'")" = 0 ] || return 0
  once discover-hosts "$root/usr/bin/nova-manage" --config-file "$etc/nova/nova.conf" cell_v2 discover_hosts
}

up() {
  install_packages
  configure
  start_rabbitmq # the slowest
  start_mariadb
  make_databases
  begin_schemas
  make_keystone
  start_service keystone
  provision_identity
  end_schemas
  start_services
  say "all are started; waiting until they answer"
  await_http placement "http://$host:$placement_port/" 300
  await_http glance-api "http://$host:$glance_port/healthcheck" 300
  await_http neutron-server "http://$host:$neutron_port/" 300
  await_http nova-api "http://$host:$nova_port/" 300
  provision_resources
  await nova-compute 120 "its first report" nova_is_up
  discover_host
  say "up: export OS_CLIENT_CONFIG_FILE=$dir/clouds.yaml OS_CLOUD=local"
}

down() {
  stop 20 nova-compute nova-api nova-scheduler nova-conductor neutron-server glance-api placement keystone
  stop 30 rabbitmq mariadb
  stop 5 epmd
}
