package openstack

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// ordered creates a node and gives what Nova was asked for.
func ordered(t *testing.T, s *stub, p *Provider, spec providers.NodeSpec) map[string]any {
	t.Helper()
	id, err := p.CreateNode(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return s.servers[id].order
}

// Every key of pool and label arrives in Nova's request.
func TestOrder(t *testing.T) {
	s := newStub(t)
	s.networks = append(s.networks, map[string]any{"id": netPrivate, "name": "storage"})
	cfg := section()
	yes := true
	cfg.DiskImages[0].ConfigDrive = &yes
	cfg.Pools[0].SecurityGroups = []string{"default", "ssh"}
	cfg.Pools[0].AvailabilityZones = []string{"az7"}
	label := &cfg.Pools[0].Labels[0]
	label.MinRAM, label.FlavorName = 2000, "ci."
	label.KeyName, label.UserData = "infra", "text" // which happens to be base64
	label.Networks = []string{"public", netPrivate}
	label.InstanceProperties = map[string]string{"purpose": "ci", "groups": "mine", providers.MetaNode: "forged"}
	p := s.open(t, cfg)
	image := upload(t, p)
	got := ordered(t, s, p, nodeSpec(image))
	want := map[string]any{
		"name": "np0000000007", "imageRef": image, "flavorRef": "2", "key_name": "infra", "config_drive": true,
		"user_data":         base64.StdEncoding.EncodeToString([]byte("text")),
		"availability_zone": "az7",
		"security_groups":   []any{map[string]any{"name": "default"}, map[string]any{"name": "ssh"}},
		"networks":          []any{map[string]any{"uuid": netPublic}, map[string]any{"uuid": netPrivate}},
		"metadata": map[string]any{
			"purpose": "ci", "groups": "mine", providers.MetaProvider: "north",
			providers.MetaNode: "0000000007", providers.MetaPool: "main",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Nova was asked for (-want +got):\n%s", diff)
	}
}

// What nobody asks for is left to Nova, and the zone to the cloud's list.
func TestOrderOfLittle(t *testing.T) {
	s := newStub(t)
	cfg := section()
	cfg.Pools[0].Labels[0].Networks = nil
	p := s.open(t, cfg)
	image := upload(t, p)
	want := map[string]any{
		"name": "np0000000007", "imageRef": image, "flavorRef": "1", "availability_zone": "az1",
		"metadata": map[string]any{
			"groups": "north,debian,small", providers.MetaProvider: "north",
			providers.MetaNode: "0000000007", providers.MetaPool: "main",
		},
	}
	if diff := cmp.Diff(want, ordered(t, s, p, nodeSpec(image))); diff != "" {
		t.Errorf("Nova was asked for (-want +got):\n%s", diff)
	}
	other := nodeSpec(image)
	other.NodeID, other.AZ = "0000000008", "az9"
	if got := ordered(t, s, p, other)["availability_zone"]; got != "az9" {
		t.Errorf("zone %v, the launcher wanted az9", got)
	}
}

func TestOrderOfVolume(t *testing.T) {
	s := newStub(t)
	s.volumes = map[string]int{"maxTotalVolumes": 10, "maxTotalVolumeGigabytes": -1}
	cfg := section()
	label := &cfg.Pools[0].Labels[0]
	label.BootFromVolume, label.VolumeSize = true, 80
	p := s.open(t, cfg)
	image := upload(t, p)
	order := ordered(t, s, p, nodeSpec(image))
	want := []any{map[string]any{
		"source_type": "image", "uuid": image, "destination_type": "volume", "volume_size": 80.0,
		"boot_index": 0.0, "delete_on_termination": true,
	}}
	if diff := cmp.Diff(want, order["block_device_mapping_v2"]); diff != "" || order["imageRef"] != "" {
		t.Errorf("imageRef %v, volume (-want +got):\n%s", order["imageRef"], diff)
	}
	need, err := p.NodeResources(t.Context(), "main", "small")
	if err != nil || need[providers.Volumes] != 1 || need[providers.VolumeGB] != 80 {
		t.Errorf("NodeResources gave %v, %v", need, err)
	}
	limits, err := p.Limits(t.Context(), nil)
	if gb, limited := limits[providers.VolumeGB]; err != nil || limits[providers.Volumes] != 10 || limited {
		t.Errorf("Limits gave %v (%d GB), %v", limits, gb, err)
	}
}

// Volumes that Cinder has no room for are a lack of room; they go with their servers.
func TestVolumesAreLimited(t *testing.T) {
	s := newStub(t)
	s.volumes = map[string]int{"maxTotalVolumes": 2, "maxTotalVolumeGigabytes": 1000}
	cfg := section()
	cfg.Pools[0].Labels[0].BootFromVolume, cfg.Pools[0].Labels[0].VolumeSize = true, 40
	p := s.open(t, cfg)
	image := upload(t, p)
	launch := func(node string) (string, error) {
		spec := nodeSpec(image)
		spec.NodeID = node
		id, err := p.CreateNode(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.WaitNode(t.Context(), id)
		return id, err
	}
	var ids []string
	for _, node := range []string{"0000000001", "0000000002", "0000000003"} {
		id, err := launch(node)
		ids = append(ids, id)
		if full := len(ids) > 2; full != errors.Is(err, providers.ErrQuota) || !full && err != nil {
			t.Errorf("volume %d of 2: %v", len(ids), err)
		}
	}
	for _, id := range ids[1:] {
		if err := p.DeleteNode(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if id, err := launch("0000000004"); err != nil || s.disks[id] != 40 || len(s.disks) != 2 {
		t.Errorf("in the room of one that is gone: %v, volumes %v", err, s.disks)
	}
	if limits, err := p.Limits(t.Context(), nil); err != nil || limits[providers.Volumes] != 2 {
		t.Errorf("with Cinder, Limits gave %v, %v", limits, err)
	}
	s.fail("GET /volume", 1000, hangUp)
	p.pace.total = p.pace.first
	if limits, err := p.Limits(t.Context(), nil); err != nil || limits[providers.Volumes] != 2 || limits[providers.Instances] == 0 || p.health.first() != nil {
		t.Errorf("without Cinder, Limits gave %v, %v; the cloud counts as unusable: %v", limits, err, p.health.first())
	}
}

func TestCloudImage(t *testing.T) {
	s := newStub(t)
	cfg := section()
	label := &cfg.Pools[0].Labels[0]
	label.DiskImage, label.CloudImage = "", "debian-12"
	cfg.CloudImages = []configs.CloudImage{{Name: "debian-12", ImageName: "Debian 12"}, {Name: "by-id", ImageID: netPublic}}
	p := s.open(t, cfg)
	_, err := p.CreateNode(t.Context(), nodeSpec(""))
	if !errors.Is(err, providers.ErrInvalid) || !strings.Contains(err.Error(), `cloud-image: the cloud has no active image called "Debian 12"`) {
		t.Errorf("without the image, CreateNode gave %v", err)
	}
	for id, image := range map[string]map[string]any{
		netPublic:  {"name": "Debian 12", "status": "active", "created_at": "2026-01-01T00:00:00Z"},
		netPrivate: {"name": "Debian 12", "status": "active", "created_at": "2026-03-01T00:00:00Z"},
		netOutside: {"name": "Debian 12", "status": "queued", "created_at": "2026-05-01T00:00:00Z"},
	} {
		image["id"] = id
		s.images[id] = &stubImage{fields: image}
	}
	if got := ordered(t, s, p, nodeSpec(""))["imageRef"]; got != netPrivate {
		t.Errorf("booted from %v, the newest active image is %s", got, netPrivate)
	}
	p.cfg.Pools[0].Labels[0].CloudImage = "by-id"
	other := nodeSpec("")
	other.NodeID = "0000000008"
	if got := ordered(t, s, p, other)["imageRef"]; got != netPublic {
		t.Errorf("booted from %v, want the id of the configuration", got)
	}
}

// Of two servers of one node, the older one is the node.
func TestTwins(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	meta := map[string]any{providers.MetaNode: "0000000007", providers.MetaProvider: "north"}
	young := s.addServer(map[string]any{"name": "np", "metadata": meta})
	old := s.addServer(map[string]any{"name": "np", "metadata": meta})
	leaving := s.addServer(map[string]any{"name": "np", "metadata": meta})
	foreign := s.addServer(map[string]any{"name": "np", "metadata": map[string]any{
		providers.MetaNode: "0000000007", providers.MetaProvider: "south",
	}})
	other := s.addServer(map[string]any{"name": "np", "metadata": map[string]any{ // of another installation
		providers.MetaNode: "0000000007", providers.MetaProvider: "north", providers.MetaSite: "theirs",
	}})
	old.fields["created"], leaving.fields["created"] = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"
	foreign.fields["created"], other.fields["created"] = "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"
	leaving.fields["OS-EXT-STS:task_state"] = taskDeleting
	id, err := p.CreateNode(t.Context(), nodeSpec(upload(t, p)))
	if err != nil || id != old.fields["id"] {
		t.Errorf("CreateNode gave %s, %v, want %s, not %s", id, err, old.fields["id"], young.fields["id"])
	}
	if err := p.DeleteNode(t.Context(), id); err != nil {
		t.Error(err)
	}
	for _, stays := range []string{foreign.fields["id"].(string), other.fields["id"].(string)} {
		if s.servers[stays] == nil {
			t.Errorf("DeleteNode took server %s, which is another's", stays)
		}
	}
	if len(s.servers) != 2 {
		t.Errorf("DeleteNode left %d servers, want two: of another provider, and of another site", len(s.servers))
	}
}

// A refusal of Nova's names provider, pool, label and key.
func TestRefusals(t *testing.T) {
	for message, want := range map[string]struct {
		status int
		kind   error
		key    string
	}{
		"Invalid key_name provided.":                             {400, providers.ErrInvalid, "key-name"},
		"Flavor's disk is too small for requested image.":        {400, providers.ErrInvalid, "flavor-name"},
		"Flavor 1 could not be found.":                           {400, providers.ErrInvalid, "flavor-name"},
		"Security group ssh not found for project x.":            {400, providers.ErrInvalid, "security-groups"},
		"The requested availability zone is not available":       {400, providers.ErrInvalid, "availability-zones"},
		"Network x could not be found.":                          {400, providers.ErrInvalid, "networks"},
		"Multiple possible networks found, use a Network ID":     {409, providers.ErrInvalid, "networks"},
		"Block Device Mapping is Invalid.":                       {400, providers.ErrInvalid, "boot-from-volume"},
		"Invalid input for field/attribute purpose. Value: much": {400, providers.ErrInvalid, "instance-properties"},
		"Can not find requested image":                           {400, providers.ErrNotFound, "diskimage"},
		"Image 1-2 is not active.":                               {400, providers.ErrNotFound, "diskimage"},
		"Image 1-2 is unacceptable: too strange":                 {400, providers.ErrInvalid, "diskimage"},
		"Quota exceeded for cores: Requested 8":                  {403, providers.ErrQuota, ""},
		"Maximum number of ports exceeded":                       {403, providers.ErrQuota, ""},
		"Policy doesn't allow servers:create to be performed.":   {403, providers.ErrInvalid, ""},
		"Something else":                                         {400, providers.ErrInvalid, ""},
		"Quota exceeded for resources: ['port'].":                {409, providers.ErrQuota, ""},
	} {
		t.Run(message, func(t *testing.T) {
			s := newStub(t)
			cfg := section()
			cfg.Pools[0].Labels[0].InstanceProperties = map[string]string{"purpose": "ci"}
			p := s.open(t, cfg)
			image := upload(t, p)
			s.fail("POST /compute/v2.1/servers", 1, func(w http.ResponseWriter, _ *http.Request) bool {
				refuse(w, want.status, "badRequest", message)
				return true
			})
			_, err := p.CreateNode(t.Context(), nodeSpec(image))
			for _, word := range []string{"provider north: pool main, label small", want.key, message, "req-stub"} {
				if !errors.Is(err, want.kind) || !strings.Contains(err.Error(), word) {
					t.Errorf("CreateNode gave %v, want %v with %q", err, want.kind, word)
				}
			}
		})
	}
}

// What is remembered of a cloud is asked for again once the cloud says that it
// is wrong.
func TestForget(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	spec := nodeSpec(upload(t, p))
	s.fail("POST /compute/v2.1/servers", 1, answer(400))
	if _, err := p.CreateNode(t.Context(), spec); !errors.Is(err, providers.ErrInvalid) {
		t.Errorf("CreateNode gave %v", err)
	}
	before := s.count("GET /compute/v2.1/flavors")
	if _, err := p.CreateNode(t.Context(), spec); err != nil {
		t.Error(err)
	}
	if after := s.count("GET /compute/v2.1/flavors"); before != 1 || after != 2 {
		t.Errorf("flavors were asked for %d times, then %d", before, after)
	}
}
