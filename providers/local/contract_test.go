package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/providertest"
)

// room is how many guests fit.
const room = 3

// section is a provider of the configuration: guests as small as they come.
func section(dir string) configs.Provider {
	return configs.Provider{
		Name: "local-1", Driver: "local",
		Settings: &configs.LocalDriver{Dir: dir, Accel: "tcg", MaxGuests: room, Memory: 16, Cores: 1},
		Pools: []configs.Pool{{
			Name:   "main",
			Labels: []configs.PoolLabel{{Name: "small", DiskImage: "tiny"}, {Name: "huge", DiskImage: "tiny", MinRAM: 1 << 30}},
		}},
	}
}

func open(t *testing.T, cfg configs.Provider, opts Options) *Provider {
	t.Helper()
	opts.Logger = hclog.New(&hclog.LoggerOptions{Output: t.Output(), Level: hclog.Debug})
	p, err := New(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// greeting is what the test's operating system says on the serial port.
const greeting = "a guest has booted\r\n"

// settingsOf are what a section of the driver has of its own.
func settingsOf(cfg *configs.Provider) *configs.LocalDriver {
	return configs.SettingsOf[configs.LocalDriver](cfg)
}

// bootSector prints the greeting to the serial port and waits for ever.
func bootSector() []byte {
	code := []byte{
		0xfa,       // cli
		0x31, 0xc0, // xor ax, ax
		0x8e, 0xd8, // mov ds, ax
		0xbe, 0x40, 0x7c, // mov si, greeting
		0xba, 0xf8, 0x03, // mov dx, the first serial port
		0xac,       // next: lodsb
		0x08, 0xc0, // or al, al
		0x74, 0x03, // jz end
		0xee,       // out dx, al
		0xeb, 0xf8, // jmp next
		0xfb,       // end: sti
		0xf4,       // hlt
		0xeb, 0xfd, // jmp to the hlt
	}
	disk := sector(code)
	copy(disk[0x40:], greeting)
	for i := 1 << 20; i < len(disk); i++ { // one half is data, the other a hole
		disk[i] = byte(i>>8) | 1
	}
	return disk
}

// sector is a disk that runs this code.
func sector(code []byte) []byte {
	disk := make([]byte, 2<<20)
	copy(disk, code)
	disk[510], disk[511] = 0x55, 0xaa
	return disk
}

// imageFile makes a bootable image.
func imageFile(t *testing.T) string {
	t.Helper()
	return imageOf(t, bootSector())
}

// imageOf makes an image of a disk.
func imageOf(t *testing.T, disk []byte) string {
	t.Helper()
	dir := t.TempDir()
	raw, qcow := filepath.Join(dir, "image.raw"), filepath.Join(dir, "image.qcow2")
	if err := os.WriteFile(raw, disk, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "qemu-img", "convert", "-O", "qcow2", raw, qcow).CombinedOutput()
	if err != nil {
		t.Fatalf("qemu-img: %v: %s", err, out)
	}
	return qcow
}

func TestContract(t *testing.T) {
	image := imageFile(t)
	providertest.Run(t, providertest.Harness{
		Open: func(t *testing.T, dir string) providers.Provider {
			t.Helper()
			return open(t, section(dir), Options{})
		},
		Image:  func(*testing.T) string { return image },
		Format: "qcow2", Pool: "main", Label: "small", Room: room,
	})
}
