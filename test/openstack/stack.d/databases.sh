# Part of test/openstack/stack: MariaDB, RabbitMQ and the databases' schemas.
# shellcheck shell=bash

sql() { mariadb --no-defaults -S "$state/mysql.sock" -N -B "$@"; }

start_mariadb() {
  local user
  user=$(id -un)
  port_is_free mariadb "$mariadb_port"
  if [ ! -e "$state/mysql/.installed" ]; then
    rm -rf "$state/mysql"
    once mariadb-install mariadb-install-db --no-defaults --user="$user" --datadir="$state/mysql" \
      --auth-root-authentication-method=socket --auth-root-socket-user="$user" --skip-test-db --skip-name-resolve
    touch "$state/mysql/.installed"
  fi
  # Fast rather than safe: it is a test's.
  start mariadb mariadbd --no-defaults --user="$user" --datadir="$state/mysql" --socket="$state/mysql.sock" \
    --pid-file="$state/mysql.pid" --port="$mariadb_port" --bind-address=$host --skip-name-resolve \
    --character-set-server=utf8mb3 --collation-server=utf8mb3_general_ci --max-connections=600 \
    --innodb-buffer-pool-size=256M --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 --sync-frm=0 \
    --performance-schema=0
}

# start_rabbitmq has an epmd of its own: the usual one would stay behind.
start_rabbitmq() {
  port_is_free rabbitmq "$rabbit_port"
  port_is_free epmd "$epmd_port"
  start epmd epmd -address $host -port "$epmd_port"
  await_port epmd "$epmd_port" 20
  start rabbitmq env ERL_EPMD_PORT="$epmd_port" ERL_EPMD_ADDRESS=$host HOME="$state/rabbitmq" \
    RABBITMQ_NODENAME=stack@localhost RABBITMQ_CONF_ENV_FILE="$etc/rabbitmq/rabbitmq-env.conf" \
    RABBITMQ_CONFIG_FILE="$etc/rabbitmq/rabbitmq.conf" RABBITMQ_ADVANCED_CONFIG_FILE="$etc/rabbitmq/none.config" \
    RABBITMQ_ENABLED_PLUGINS_FILE="$etc/rabbitmq/enabled_plugins" \
    RABBITMQ_MNESIA_BASE="$state/rabbitmq/mnesia" RABBITMQ_LOG_BASE="$log" \
    RABBITMQ_PID_FILE="$state/rabbitmq/rabbitmq.pid" \
    RABBITMQ_GENERATED_CONFIG_DIR="$state/rabbitmq/config" RABBITMQ_DIST_PORT="$rabbit_dist_port" \
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none" \
    /usr/lib/rabbitmq/bin/rabbitmq-server
}

make_databases() {
  local db
  await_port mariadb "$mariadb_port" 60
  {
    echo "CREATE USER IF NOT EXISTS openstack@'127.0.0.1' IDENTIFIED BY '$password';"
    for db in keystone glance placement nova_api nova nova_cell0 neutron; do
      echo "CREATE DATABASE IF NOT EXISTS $db CHARACTER SET utf8mb3; GRANT ALL ON $db.* TO openstack@'127.0.0.1';"
    done
  } | sql
}

schema_jobs=()

# begin_schemas makes those of all services but keystone, in the background.
begin_schemas() {
  local nova=("$root/usr/bin/nova-manage" --config-file "$etc/nova/nova.conf")
  [ ! -e "$state/.schemas" ] || return 0
  say "creating the databases' schemas"
  (
    once schema-placement placement-manage --config-file "$etc/placement/placement.conf" db sync
    once schema-glance "$root/usr/bin/glance-manage" --config-file "$etc/glance/glance-api.conf" db_sync
  ) &
  schema_jobs+=($!)
  (
    once schema-nova-api "${nova[@]}" api_db sync
    once schema-nova-cell0 "${nova[@]}" cell_v2 map_cell0 --database_connection "$(database_url nova_cell0)"
    once schema-nova "${nova[@]}" db sync
    sql -e 'select name from nova_api.cell_mappings' | grep -qx cell1 ||
      once schema-nova-cell1 "${nova[@]}" cell_v2 create_cell --name=cell1
  ) &
  schema_jobs+=($!)
  PYTHONPATH=$python once schema-neutron "$root/usr/bin/neutron-db-manage" \
    --config-file "$etc/neutron/neutron.conf" --config-file "$etc/neutron/ml2_conf.ini" upgrade heads &
  schema_jobs+=($!)
}

end_schemas() {
  local job rc=0
  [ ! -e "$state/.schemas" ] || return 0
  for job in "${schema_jobs[@]}"; do wait "$job" || rc=1; done
  [ $rc = 0 ] || fail "the databases' schemas could not be made"
  touch "$state/.schemas"
}

make_keystone() {
  [ ! -e "$state/.keystone" ] || return 0
  local manage=(env "OS_KEYSTONE_CONFIG_DIR=$etc/keystone" keystone-manage --config-file "$etc/keystone/keystone.conf")
  local who=(--keystone-user "$(id -un)" --keystone-group "$(id -gn)") url=http://$host:$keystone_port/v3
  mkdir -p "$state/keystone/fernet-keys" "$state/keystone/credential-keys"
  chmod 700 "$state/keystone"/*-keys
  once schema-keystone "${manage[@]}" db_sync
  once keystone-fernet "${manage[@]}" fernet_setup "${who[@]}"
  once keystone-credential "${manage[@]}" credential_setup "${who[@]}"
  once keystone-bootstrap "${manage[@]}" bootstrap --bootstrap-username admin --bootstrap-password "$password" \
    --bootstrap-project-name admin --bootstrap-role-name admin --bootstrap-service-name keystone \
    --bootstrap-region-id $region --bootstrap-public-url "$url" --bootstrap-internal-url "$url" --bootstrap-admin-url "$url"
  touch "$state/.keystone"
}
