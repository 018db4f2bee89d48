// Package model reads Amazon's published description of its services, as Debian's python3-botocore has it, and
// checks requests and answers against it. What the description does not know can be neither received nor sent.
package model

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Folder is where Debian's python3-botocore has the descriptions.
const Folder = "/usr/lib/python3/dist-packages/botocore/data"

// ErrMissing says that the descriptions are not on this machine.
var ErrMissing = errors.New("no service models in " + Folder + ": apt-get install python3-botocore")

// Service is one described service.
type Service struct {
	Name     string `json:"-"`
	Metadata struct {
		APIVersion   string `json:"apiVersion"`
		Protocol     string `json:"protocol"`
		TargetPrefix string `json:"targetPrefix"`
		XMLNamespace string `json:"xmlNamespace"`
	} `json:"metadata"`
	Operations map[string]*Operation `json:"operations"`
	Shapes     map[string]*Shape     `json:"shapes"`

	queries []string // query parameters without meaning, which newer clients send
	routes  []route
}

// Operation is one call of a service.
type Operation struct {
	Name string `json:"name"`
	HTTP struct {
		Method       string `json:"method"`
		RequestURI   string `json:"requestUri"`
		ResponseCode int    `json:"responseCode"`
	} `json:"http"`
	Input    *Ref   `json:"input"`
	Output   *Ref   `json:"output"`
	Errors   []Ref  `json:"errors"`
	AuthType string `json:"authtype"`
}

// Shape is a type.
type Shape struct {
	Type            string         `json:"type"`
	Members         map[string]Ref `json:"members"`
	Required        []string       `json:"required"`
	Member          *Ref           `json:"member"`
	Value           *Ref           `json:"value"`
	Enum            []string       `json:"enum"`
	Min             *float64       `json:"min"`
	Max             *float64       `json:"max"`
	Pattern         string         `json:"pattern"`
	Flattened       bool           `json:"flattened"`
	Payload         string         `json:"payload"`
	TimestampFormat string         `json:"timestampFormat"`
	Exception       bool           `json:"exception"`
	Error           struct {
		Code           string `json:"code"`
		HTTPStatusCode int    `json:"httpStatusCode"`
	} `json:"error"`
}

// Ref is where a type is used.
type Ref struct {
	Shape        string `json:"shape"`
	Location     string `json:"location"`
	LocationName string `json:"locationName"`
	QueryName    string `json:"queryName"`
	Flattened    bool   `json:"flattened"`
	XMLAttribute bool   `json:"xmlAttribute"`
	XMLNamespace struct {
		Prefix string `json:"prefix"`
		URI    string `json:"uri"`
	} `json:"xmlNamespace"`
}

// folders are the services that can be described, by the name that signatures carry.
var folders = map[string]string{
	"ec2": "ec2", "s3": "s3", "ebs": "ebs", "sts": "sts", "servicequotas": "service-quotas", "sso": "sso", "ssooidc": "sso-oidc",
}

// Names are the services, by the names that signatures carry.
func Names() []string { return slices.Sorted(maps.Keys(folders)) }

var (
	loading sync.Mutex
	loaded  = map[string]*Service{}
)

// Load reads the newest description of a service, once in a process.
func Load(name string) (*Service, error) {
	loading.Lock()
	defer loading.Unlock()
	if s := loaded[name]; s != nil {
		return s, nil
	}
	s, err := read(name)
	if err != nil {
		return nil, err
	}
	s.addNewer()
	s.routes = s.makeRoutes()
	loaded[name] = s
	return s, nil
}

func read(name string) (*Service, error) {
	folder, known := folders[name]
	if !known {
		return nil, fmt.Errorf("model %q: no such service; there are %s", name, strings.Join(Names(), ", "))
	}
	files, err := filepath.Glob(filepath.Join(Folder, folder, "*", "service-2.json*"))
	if err != nil || len(files) == 0 {
		return nil, ErrMissing
	}
	slices.Sort(files) // by date
	data, err := contents(files[len(files)-1])
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	s := &Service{Name: name}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("read model %s: %w", files[len(files)-1], err)
	}
	return s, nil
}

// contents are those of a file that Debian 13 compresses.
func contents(path string) (_ []byte, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrMissing
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if !strings.HasSuffix(path, ".gz") {
		return io.ReadAll(f)
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
