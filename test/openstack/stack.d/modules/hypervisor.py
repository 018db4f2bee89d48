"""nova's fake hypervisor, but spawn() fetches the image from Glance like a real one, and checks it."""
import os
import tempfile

from oslo_concurrency import processutils
from oslo_log import log as logging
from oslo_serialization import jsonutils
from nova import exception
from nova.image import glance
from nova.virt import fake
from nova.virt import images

LOG = logging.getLogger(__name__)


class FetchingFakeDriver(fake.FakeDriver):
    def spawn(self, context, instance, image_meta, injected_files, admin_password, allocations,
              network_info=None, block_device_info=None, power_on=True, accel_info=None):
        if instance.image_ref:
            fd, path = tempfile.mkstemp(prefix='img-')
            os.close(fd)
            try:
                images.fetch(context, instance.image_ref, path)
                out, _ = processutils.execute('qemu-img', 'info', '--output=json', path)
                info = jsonutils.loads(out)
                LOG.info('image %s: %d bytes, qemu-img says %s, virtual size %s, glance says %s',
                         instance.image_ref, os.path.getsize(path), info['format'], info['virtual-size'],
                         image_meta.disk_format)
                if image_meta.disk_format != info['format'] and not (
                        image_meta.disk_format == 'iso' and info['format'] == 'raw'):
                    raise exception.ImageUnacceptable(
                        image_id=instance.image_ref,
                        reason='disk_format is %s but the data is %s' % (image_meta.disk_format, info['format']))
                if info['virtual-size'] > instance.flavor.root_gb * 2 ** 30 > 0:
                    raise exception.FlavorDiskSmallerThanImage(
                        flavor_size=instance.flavor.root_gb * 2 ** 30, image_size=info['virtual-size'])
            finally:
                os.unlink(path)
        return super().spawn(context, instance, image_meta, injected_files, admin_password, allocations,
                             network_info, block_device_info, power_on, accel_info)
