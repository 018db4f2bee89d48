"""Makes what an operator of a cloud makes: users, catalog, flavors, networks, quotas.

Every step finds or creates, so that it may be repeated.
"""
import json
import os
import subprocess
import sys

import openstack

ENV = os.environ
PASSWORD = ENV['STACK_PASSWORD']
REGION = ENV['STACK_REGION']

# project: (user, its roles, servers that it may have)
PROJECTS = {
    'ci': ('ci', ('member', 'reader'), 20),
    'small': ('poolkeeper', ('member',), 4),  # a provider's user needs no more than this role
    'site': ('poolkeeper', ('member',), 4),
    'refusing': ('poolkeeper', ('member',), 4),
}
FLAVORS = (('ci.tiny', 1, 256, 1), ('ci.small', 1, 1024, 10), ('ci.medium', 2, 2048, 20))


def address(service, path=''):
    return 'http://%s:%s%s' % (ENV['STACK_HOST'], ENV['STACK_' + service], path)


def identity(cloud):
    idn = cloud.identity
    roles = {r.name: r for r in idn.roles()}
    for name in ('member', 'reader'):
        if name not in roles:
            roles[name] = idn.create_role(name=name)
    projects = {p.name: p for p in idn.projects()}
    users = {u.name: u for u in idn.users()}

    def project(name):
        if name not in projects:
            projects[name] = idn.create_project(name=name, domain_id='default')
        return projects[name]

    def user(name):
        if name not in users:
            users[name] = idn.create_user(name=name, password=PASSWORD, domain_id='default')
        return users[name]

    for name in ('glance', 'placement', 'nova', 'neutron'):
        idn.assign_project_role_to_user(project('service'), user(name), roles['admin'])
    for name, (owner, granted, _) in PROJECTS.items():
        for role in granted:
            idn.assign_project_role_to_user(project(name), user(owner), roles[role])
    catalog(idn)


def catalog(idn):
    services = {s.type: s for s in idn.services()}
    endpoints = list(idn.endpoints())
    for name, kind, url in (('glance', 'image', address('GLANCE')),
                            ('nova', 'compute', address('NOVA', '/v2.1')),
                            ('placement', 'placement', address('PLACEMENT')),
                            ('neutron', 'network', address('NEUTRON'))):
        service = services.get(kind) or idn.create_service(name=name, type=kind)
        for interface in ('public', 'internal', 'admin'):
            have = [e for e in endpoints
                    if e.service_id == service.id and e.interface == interface and e.region_id == REGION]
            if not have:
                idn.create_endpoint(service_id=service.id, interface=interface, region_id=REGION, url=url)
            elif have[0].url != url:
                idn.update_endpoint(have[0], url=url)


def resources(cloud):
    flavors = {f.name for f in cloud.compute.flavors(get_extra_specs=False)}
    for name, cores, ram, disk in FLAVORS:
        if name not in flavors:
            cloud.compute.create_flavor(name=name, vcpus=cores, ram=ram, disk=disk)
    for name, (_, _, servers) in PROJECTS.items():
        project = next(cloud.identity.projects(name=name))
        cloud.set_compute_quotas(project.id, instances=servers, cores=2 * servers, ram=4096 * servers)
    network(cloud, 'public', '198.51.100', shared=True, provider_network_type='flat', provider_physical_network='public')
    networks_behind_a_router(cloud)
    keypairs()
    credentials()


def network(cloud, name, prefix, **kind):
    made = cloud.network.find_network(name) or cloud.network.create_network(name=name, **kind)
    if not cloud.network.find_subnet(name + '-v4'):
        cloud.network.create_subnet(name=name + '-v4', network_id=made.id, ip_version=4, cidr=prefix + '.0/24',
                                    gateway_ip=prefix + '.1', enable_dhcp=True)
    return made


def networks_behind_a_router(cloud):
    """A network whose servers need floating IPs. Nothing routes; the services only believe so."""
    outside = network(cloud, 'outside', '203.0.113', is_router_external=True)
    user = openstack.connect(cloud='small')
    inside = network(user, 'inside', '10.20.30')
    if not user.network.find_router('router'):
        router = user.network.create_router(name='router', external_gateway_info={'network_id': outside.id})
        user.network.add_interface_to_router(router, subnet_id=user.network.find_subnet('inside-v4').id)


def keypairs():
    key = ENV['STACK_DIR'] + '/ci_key'
    if not os.path.exists(key):
        subprocess.check_call(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'ci', '-f', key])
    with open(key + '.pub', encoding='ascii') as text:
        public = text.read().strip()
    for name in ('local', 'small'):
        user = openstack.connect(cloud=name)
        if not user.compute.find_keypair('ci-key'):
            user.compute.create_keypair(name='ci-key', public_key=public)


def credentials():
    """An application credential is shown once; so it becomes an entry of clouds.yaml at once."""
    lines = []
    for project in ('small', 'site'):
        user = openstack.connect(cloud=project)
        owner = user.current_user_id
        for old in user.identity.application_credentials(owner):
            if old.name == project:
                user.identity.delete_application_credential(owner, old)
        made = user.identity.create_application_credential(owner, project, expires_at='2099-05-06T07:08:09Z')
        entry = {
            'region_name': REGION, 'auth_type': 'v3applicationcredential',
            'auth': {"auth_url": address('KEYSTONE', '/v3'), 'application_credential_id': made.id,
                     'application_credential_secret': made.secret},
        }
        lines.append('  %s-credential: %s\n' % (project, json.dumps(entry)))
    with open(ENV['STACK_STATE'] + '/credential.yaml', 'w', encoding='ascii') as text:
        os.chmod(text.name, 0o600)
        text.writelines(lines)


if __name__ == '__main__':
    {'identity': identity, 'resources': resources}[sys.argv[1]](openstack.connect(cloud='local-admin'))
