// Package driver_test holds the driver aws against the checked endpoint.
package driver_test

import (
	"context"
	"crypto/rand"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/aws"
	"poolkeeper/providers/providertest"
	"poolkeeper/test/aws/endpoint"
)

// room is how many nodes fit.
const room = 4

// section is a provider of the configuration, in the account of an endpoint.
func section(e *endpoint.Endpoint, method string) configs.Provider {
	place := &configs.AWSPool{SubnetIDs: e.Subnets, SecurityGroupIDs: []string{e.SecurityGroup}, PublicIPv4: true}
	label := func(name string, own configs.AWSLabel) configs.PoolLabel {
		return configs.PoolLabel{Name: name, DiskImage: "tiny", KeyName: e.KeyName, Settings: &own}
	}
	return configs.Provider{
		Name: "amazon", Driver: configs.DriverAWS, Region: e.Region,
		Settings: &configs.AWSDriver{Bucket: e.Bucket, MaxServers: -1, MaxCores: -1, MaxRAM: -1}, // a rate of 0 does not wait
		CloudImages: []configs.CloudImage{{Name: "debian", Username: "admin", Settings: &configs.AWSCloudImage{
			Filters: []configs.AWSFilter{{Name: "name", Values: []string{"debian-12-amd64-*"}}},
		}}},
		DiskImages: []configs.ProviderImage{{Name: "tiny", Settings: &configs.AWSImage{
			ImportMethod: method, Architecture: "x86_64", ENASupport: true, IMDSSupport: "v2.0", VolumeType: "gp3",
		}}},
		Pools: []configs.Pool{{Name: "main", Settings: place, Labels: []configs.PoolLabel{
			label("small", configs.AWSLabel{InstanceType: "t3.small"}),
			label("fleet", configs.AWSLabel{Fleet: &configs.AWSFleet{InstanceTypes: []string{"m5.large", "c5.large"}, Strategy: "lowest-price"}}),
			label("spot", configs.AWSLabel{InstanceType: "t3.small", UseSpot: true}),
			label("either", configs.AWSLabel{InstanceType: "t3.small", UseSpot: true, SpotFallback: configs.SpotOnDemand}),
			label("full", configs.AWSLabel{
				InstanceType: "m5.large", EBSOptimized: true, VolumeType: "gp3", VolumeSize: 40, IOPS: 4000, Throughput: 250,
				ProfileName: e.Profile, Tags: map[string]string{"team": "ci"}, IMDSv2: "required",
			}),
			{Name: "cloud", CloudImage: "debian", KeyName: e.KeyName, UserData: "#cloud-config\n", Settings: &configs.AWSLabel{InstanceType: "t3.small"}},
		}}, {
			Name: "hosts", AvailabilityZones: e.Zones[:1], Settings: &configs.AWSPool{SubnetIDs: e.Subnets[:1], UseInternalIP: true},
			Labels: []configs.PoolLabel{
				label("host", configs.AWSLabel{InstanceType: "m5.large", DedicatedHost: true}),
				label("mac", configs.AWSLabel{InstanceType: "mac1.metal", DedicatedHost: true}),
			},
		}, {
			Name: "anywhere", Settings: &configs.AWSPool{PublicIPv4: true, PublicIPv6: true},
			Labels: []configs.PoolLabel{label("any", configs.AWSLabel{InstanceType: "t3.small"})},
		}},
	}
}

func open(t *testing.T, cfg configs.Provider) *aws.Provider {
	t.Helper()
	return openPatient(t, cfg, 0)
}

// openPatient opens a provider that repeats calls after a while.
func openPatient(t *testing.T, cfg configs.Provider, retry time.Duration) *aws.Provider {
	t.Helper()
	p, err := aws.New(cfg, aws.Options{
		Logger: hclog.New(&hclog.LoggerOptions{Output: t.Output(), Level: hclog.Debug}),
		Poll:   20 * time.Millisecond, Settle: 5 * time.Second, RetryTime: retry,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// builder hands the name of what was built along, as a builder does.
type builder struct{ *aws.Provider }

// UploadImage implements providers.Images.
func (b builder) UploadImage(ctx context.Context, up providers.ImageUpload) (string, error) {
	up.Metadata = maps.Clone(up.Metadata) // which others send, too
	up.Metadata[providers.MetaImage] = "tiny"
	return b.Provider.UploadImage(ctx, up)
}

func TestContract(t *testing.T) {
	for _, method := range []string{configs.AWSImportSnapshot, configs.AWSImportEBSDirect, configs.AWSImportImage} {
		t.Run(method, func(t *testing.T) {
			e := endpoint.Start(t, endpoint.Options{})
			e.Quota("ec2", "L-1216C47A", 2*room)
			e.Env(t)
			providertest.Run(t, providertest.Harness{
				Open: func(t *testing.T, _ string) providers.Provider {
					t.Helper()
					return builder{open(t, section(e, method))}
				},
				Image: imageFile, Format: "raw", Pool: "main", Label: "small", Room: room,
			})
		})
	}
}

// imageFile makes a file of 2.5 MiB, of which one is a hole.
func imageFile(t *testing.T) string {
	t.Helper()
	data := make([]byte, 5<<19)
	_, _ = rand.Read(data) // never fails
	clear(data[1<<20 : 2<<20])
	path := filepath.Join(t.TempDir(), "tiny-0000000001.raw")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
