package kubernetes

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"
)

// inPod is the folder in which a pod has its service account.
const inPod = "/var/run/secrets/kubernetes.io/serviceaccount"

// kubeconfig is the part of a kubeconfig that we use.
type kubeconfig struct {
	Current  string `yaml:"current-context"`
	Clusters []struct {
		Name    string
		Cluster endpoint
	}
	Users []struct {
		Name string
		User login
	}
	Contexts []struct {
		Name    string
		Context struct{ Cluster, User string }
	}
}

// endpoint says how to reach an API server.
type endpoint struct {
	Server    string
	TLSName   string `yaml:"tls-server-name"`
	Insecure  bool   `yaml:"insecure-skip-tls-verify"`
	CAFile    string `yaml:"certificate-authority"`
	CAData    string `yaml:"certificate-authority-data"` // in base64
	Proxy     string `yaml:"proxy-url"`
	PlainData bool   `yaml:"disable-compression"`
}

// login says how to log in.
type login struct {
	Token, Username, Password string
	TokenFile                 string              `yaml:"tokenFile"`
	CertFile                  string              `yaml:"client-certificate"`
	CertData                  string              `yaml:"client-certificate-data"` // in base64
	KeyFile                   string              `yaml:"client-key"`
	KeyData                   string              `yaml:"client-key-data"` // in base64
	As                        string              `yaml:"as"`
	AsUID                     string              `yaml:"as-uid"`
	AsGroups                  []string            `yaml:"as-groups"`
	AsExtra                   map[string][]string `yaml:"as-user-extra"`
	Exec                      *program            `yaml:"exec"`
	Plugin                    *yaml.Node          `yaml:"auth-provider"`
}

// program prints credentials.
type program struct {
	APIVersion      string `yaml:"apiVersion"`
	Command         string
	Args            []string
	Env             []struct{ Name, Value string }
	InstallHint     string `yaml:"installHint"`
	ProvideCluster  bool   `yaml:"provideClusterInfo"`
	InteractiveMode string `yaml:"interactiveMode"`
}

// settings are a cluster and the user to log in as.
type settings struct {
	server endpoint
	user   login
}

// readSettings reads a context of the kubeconfig; "" is the current one. Without a kubeconfig it
// returns the settings of the cluster in which we run.
func readSettings(context string) (settings, error) {
	paths := filepath.SplitList(os.Getenv("KUBECONFIG"))
	if len(paths) == 0 {
		home, _ := os.UserHomeDir() // without it there is no such file
		paths = []string{filepath.Join(home, ".kube", "config")}
	}
	var all kubeconfig
	found := false
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if path == "" || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var one kubeconfig
		if err == nil {
			err = yaml.Unmarshal(text, &one)
		}
		if err != nil {
			return settings{}, fmt.Errorf("read %s: %w", path, err)
		}
		found = true
		one.resolve(filepath.Dir(path))
		all.Current = cmp.Or(all.Current, one.Current) // the first file wins
		all.Clusters, all.Users, all.Contexts = append(all.Clusters, one.Clusters...), append(all.Users, one.Users...), append(all.Contexts, one.Contexts...)
	}
	if found {
		return all.settings(cmp.Or(context, all.Current))
	}
	s, err := settingsInPod()
	if err != nil {
		return s, fmt.Errorf("none of %s exists, and we do not run in a cluster", strings.Join(paths, ", "))
	}
	return s, nil
}

// resolve makes paths absolute that are relative to the kubeconfig's folder.
func (k *kubeconfig) resolve(dir string) {
	absolute := func(paths ...*string) {
		for _, path := range paths {
			if *path != "" && !filepath.IsAbs(*path) {
				*path = filepath.Join(dir, *path)
			}
		}
	}
	for i := range k.Clusters {
		absolute(&k.Clusters[i].Cluster.CAFile)
	}
	for i := range k.Users {
		u := &k.Users[i].User
		absolute(&u.TokenFile, &u.CertFile, &u.KeyFile)
		if u.Exec != nil && strings.ContainsRune(u.Exec.Command, filepath.Separator) { // else the PATH has it
			absolute(&u.Exec.Command)
		}
	}
}

// settings returns the settings of a context.
func (k *kubeconfig) settings(context string) (settings, error) {
	var s settings
	if context == "" {
		return s, errors.New("the kubeconfig has no current-context, and the provider names no context")
	}
	for _, one := range k.Contexts {
		if one.Name != context {
			continue
		}
		cluster, login := false, one.Context.User == ""
		for _, c := range k.Clusters {
			if c.Name == one.Context.Cluster && !cluster {
				s.server, cluster = c.Cluster, true
			}
		}
		for _, u := range k.Users {
			if u.Name == one.Context.User && !login {
				s.user, login = u.User, true
			}
		}
		switch {
		case !cluster || s.server.Server == "":
			return s, fmt.Errorf("context %q: the kubeconfig has no server for cluster %q", context, one.Context.Cluster)
		case !login:
			return s, fmt.Errorf("context %q: the kubeconfig has no user %q", context, one.Context.User)
		case s.user.Plugin != nil:
			return s, fmt.Errorf("user %q: auth-provider is not supported: use exec", one.Context.User)
		case s.user.Exec != nil && s.user.Exec.InteractiveMode == "Always":
			return s, fmt.Errorf("user %q: the program needs a terminal (interactiveMode: Always), and a daemon has none", one.Context.User)
		}
		if !strings.Contains(s.server.Server, "://") {
			s.server.Server = "https://" + s.server.Server
		}
		return s, nil
	}
	return s, fmt.Errorf("context %q does not exist in the kubeconfig", context)
}

// settingsInPod are those of a pod's service account.
func settingsInPod() (settings, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	s := settings{endpoint{Server: "https://" + net.JoinHostPort(host, port), CAFile: inPod + "/ca.crt"}, login{TokenFile: inPod + "/token"}}
	if host == "" || port == "" {
		return s, errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
	}
	_, err := os.Stat(s.user.TokenFile)
	return s, err
}

// content returns data in base64, or else a file.
func content(data, file string) ([]byte, error) {
	if data != "" {
		return base64.StdEncoding.DecodeString(data)
	}
	if file == "" {
		return nil, nil
	}
	return os.ReadFile(file)
}
