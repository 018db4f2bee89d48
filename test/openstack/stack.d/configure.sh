# Part of test/openstack/stack: the services' configuration.
# shellcheck shell=bash

readonly transport="rabbit://stack:$password@$host:$rabbit_port/"

database_url() { printf 'mysql+pymysql://openstack:%s@%s:%s/%s?charset=utf8' "$password" "$host" "$mariadb_port" "$1"; }

# client USER is how a service logs in to keystone.
client() {
  cat <<EOF
auth_url = http://$host:$keystone_port/v3
auth_type = password
project_domain_name = Default
user_domain_name = Default
project_name = service
username = $1
password = $password
region_name = $region
EOF
}

# authtoken USER is how a service checks the tokens of others.
authtoken() {
  cat <<EOF
[keystone_authtoken]
www_authenticate_uri = http://$host:$keystone_port/v3
$(client "$1")
service_token_roles_required = true
service_token_roles = admin
EOF
}

common() {
  cat <<EOF
[oslo_concurrency]
lock_path = $state/lock
[oslo_messaging_notifications]
driver = noop
[oslo_messaging_rabbit]
heartbeat_in_pthread = false
[oslo_policy]
enforce_scope = false
EOF
}

configure() {
  mkdir -p "$etc"/{keystone,glance,nova,neutron,placement,rabbitmq} \
    "$state"/{nova/instances,neutron,lock,glance/images,glance/images2,glance/staging,glance/tasks,glance/cache,rabbitmq,keystone}
  configure_keystone
  configure_glance
  configure_placement
  configure_nova
  configure_neutron
  configure_rabbitmq
  install_modules
  write_clouds
}

configure_keystone() {
  cat > "$etc/keystone/keystone.conf" <<EOF
[DEFAULT]
use_stderr = true
debug = false
[database]
connection = $(database_url keystone)
max_pool_size = 5
[token]
provider = fernet
expiration = 14400
[fernet_tokens]
key_repository = $state/keystone/fernet-keys
[fernet_receipts]
key_repository = $state/keystone/fernet-keys
[credential]
key_repository = $state/keystone/credential-keys
# Without, each check of a token costs a tenth of a second of a processor.
[cache]
enabled = true
backend = dogpile.cache.memory
expiration_time = 300
[identity]
password_hash_rounds = 4
[oslo_policy]
enforce_scope = false
EOF
}

configure_glance() {
  cp "$root/usr/share/glance-common/glance-api-paste.ini" "$etc/glance/"
  cat > "$etc/glance/glance-api.conf" <<EOF
[DEFAULT]
bind_host = $host
bind_port = $glance_port
workers = 2
enabled_backends = local:file, second:file
enabled_import_methods = [glance-direct,web-download,copy-image]
worker_self_reference_url = http://$host:$glance_port
show_multiple_locations = false
image_cache_dir = $state/glance/cache
user_storage_quota = 1536MB
use_stderr = true
log_file =
transport_url = $transport
[database]
connection = $(database_url glance)
[glance_store]
default_backend = local
[local]
filesystem_store_datadir = $state/glance/images
[second]
filesystem_store_datadir = $state/glance/images2
[os_glance_staging_store]
filesystem_store_datadir = $state/glance/staging
[os_glance_tasks_store]
filesystem_store_datadir = $state/glance/tasks
[paste_deploy]
flavor = keystone
config_file = $etc/glance/glance-api-paste.ini
[taskflow_executor]
engine_mode = parallel
max_workers = 4
[task]
work_dir = $state/glance/tasks
$(authtoken glance)
$(common)
EOF
  # web-download: by default only ports 80 and 443 pass, and (Debian security updates of 2026, CVE-2026-71196..8)
  # loopback addresses never do unless named in allowed_hosts; that list then shuts out all other hosts
  cat > "$etc/glance/glance-image-import.conf" <<EOF
[image_import_opts]
image_import_plugins = [image_conversion]
[image_conversion]
output_format = raw
[import_filtering_opts]
allowed_schemes = [http,https]
allowed_ports = []
allowed_hosts = [$host]
disallowed_schemes = []
disallowed_hosts = []
disallowed_ports = []
EOF
}

configure_placement() {
  cat > "$etc/placement/placement.conf" <<EOF
[DEFAULT]
use_stderr = true
[api]
auth_strategy = keystone
[placement_database]
connection = $(database_url placement)
max_pool_size = 5
$(authtoken placement)
$(common)
EOF
}

configure_nova() {
  cp "$root/usr/share/nova-common/api-paste.ini" "$etc/nova/"
  cat > "$etc/nova/nova.conf" <<EOF
[DEFAULT]
host = $compute_host
my_ip = $host
state_path = $state/nova
instances_path = $state/nova/instances
enabled_apis = osapi_compute
osapi_compute_listen = $host
osapi_compute_listen_port = $nova_port
osapi_compute_workers = 2
transport_url = $transport
compute_driver = stack.FetchingFakeDriver
report_interval = 3
service_down_time = 20
vif_plugging_is_fatal = false
vif_plugging_timeout = 0
resume_guests_state_on_host_boot = true
use_stderr = true
allow_resize_to_same_host = true
# the fake hypervisor forgets its guests on restart: do not let the sync task stop ACTIVE servers
sync_power_state_interval = -1
[api]
auth_strategy = keystone
[wsgi]
api_paste_config = $etc/nova/api-paste.ini
[api_database]
connection = $(database_url nova_api)
max_pool_size = 5
[database]
connection = $(database_url nova)
max_pool_size = 5
[conductor]
workers = 1
[scheduler]
workers = 1
[quota]
instances = 20
cores = 40
ram = 81920
[glance]
$(client nova)
endpoint_override = http://$host:$glance_port
[neutron]
$(client nova)
endpoint_override = http://$host:$neutron_port
[placement]
$(client nova)
[service_user]
send_service_user_token = true
$(client nova)
[vnc]
enabled = false
[spice]
enabled = false
[cinder]
catalog_info = volumev3::publicURL
$(authtoken nova)
$(common)
EOF
}

configure_neutron() {
  cp "$root/usr/share/neutron-common/api-paste.ini" "$etc/neutron/"
  cat > "$etc/neutron/neutron.conf" <<EOF
[DEFAULT]
bind_host = $host
bind_port = $neutron_port
state_path = $state/neutron
core_plugin = ml2
service_plugins = router
auth_strategy = keystone
api_paste_config = $etc/neutron/api-paste.ini
transport_url = $transport
api_workers = 1
rpc_workers = 0
rpc_state_report_workers = 0
notify_nova_on_port_status_changes = false
# Nova hears of floating IPs by this.
notify_nova_on_port_data_changes = true
send_events_interval = 0
use_stderr = true
[database]
connection = $(database_url neutron)
max_pool_size = 5
[quotas]
quota_port = 500
[nova]
$(client nova)
[placement]
$(client neutron)
$(authtoken neutron)
$(common)
EOF
  cat > "$etc/neutron/ml2_conf.ini" <<EOF
[ml2]
type_drivers = flat,vlan,local
tenant_network_types = local
mechanism_drivers = stack
extension_drivers = port_security
[ml2_type_flat]
flat_networks = public
[ml2_type_vlan]
network_vlan_ranges = public
[securitygroup]
enable_security_group = true
EOF
}

configure_rabbitmq() {
  cat > "$etc/rabbitmq/rabbitmq.conf" <<EOF
listeners.tcp.1 = $host:$rabbit_port
default_user = stack
default_pass = $password
disk_free_limit.absolute = 64MB
log.console = true
log.console.level = info
log.file = false
EOF
  echo '[].' > "$etc/rabbitmq/enabled_plugins"
  echo "NODE_PORT=$rabbit_port" > "$etc/rabbitmq/rabbitmq-env.conf"
}

# install_modules puts our own Python where the services find it: a mechanism
# driver for neutron, a hypervisor for nova.
install_modules() {
  local info=$python/stack-1.0.dist-info
  mkdir -p "$python/stack" "$info" "$python/nova_virt"
  : >"$python/stack/__init__.py"
  cp "$here/stack.d/modules/ml2.py" "$python/stack/"
  printf 'Metadata-Version: 2.1\nName: stack\nVersion: 1.0\n' >"$info/METADATA"
  printf '[neutron.ml2.mechanism_drivers]\nstack = stack.ml2:MechanismDriver\n' >"$info/entry_points.txt"
  cp "$here/stack.d/modules/hypervisor.py" "$python/nova_virt/stack.py"
  # Nova loads drivers from its package nova.virt only: this adds a folder to it.
  cat >"$python/nova-compute" <<EOF
#!/usr/bin/python3
import sys
from nova.cmd.compute import main
import nova.virt
nova.virt.__path__.append('$python/nova_virt')
sys.argv[0] = 'nova-compute'
sys.exit(main())
EOF
  chmod 755 "$python/nova-compute"
}

# cloud NAME USER PROJECT is one entry of clouds.yaml.
cloud() {
  cat <<EOF
  $1:
    region_name: $region
    identity_api_version: 3
    auth:
      auth_url: http://$host:$keystone_port/v3
      username: $2
      password: $password
      project_name: $3
      user_domain_id: default
      project_domain_id: default
EOF
}

# write_clouds: local has room for 20 servers, small, site and refusing for 4 each, and
# their user no more rights than a provider needs. provision.py adds
# small-credential and site-credential, application credentials of that user.
write_clouds() {
  {
    echo 'clouds:'
    cloud local ci ci
    cloud local-admin admin admin
    cloud small poolkeeper small
    cloud site poolkeeper site
    cloud refusing poolkeeper refusing
  } >"$dir/clouds.yaml"
  [ ! -s "$state/credential.yaml" ] || cat "$state/credential.yaml" >>"$dir/clouds.yaml"
  chmod 600 "$dir/clouds.yaml"
  printf '%s http://'"$host"':%s\n' identity "$keystone_port" image "$glance_port" compute "$nova_port" \
    network "$neutron_port" >"$dir/services"
}
