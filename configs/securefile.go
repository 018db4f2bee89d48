package configs

// secureFile is what the file with the secrets says.
type secureFile struct {
	zk      ZooKeeper
	token   string             // of webapp
	envVars map[string]EnvVars // by image
	sinks   map[string]string  // keys of event sinks, by name
	hooks   map[string]string  // secrets by name; "" cannot be read
}

func (l *loader) decodeSecure(path string, content []byte) {
	src := &source{load: l, file: path, secret: true}
	root, ok := src.parse(content)
	if !ok {
		return
	}
	l.readKeys(root) // before the rest, which may be sealed
	root.decode("secure file", l.secureKeys())
}

// secureKeys is the schema of the file.
func (l *loader) secureKeys() fields {
	keys := l.zooKeeperKeys(&l.secure.zk)
	keys["diskimages"] = func(v value) {
		for _, item := range v.items() {
			l.secureImage(item)
		}
	}
	keys["events"] = l.secureEvents
	keys["hooks"] = l.secureHooks
	keys["secret-key"] = notEmpty(&l.sealed.file)
	keys["config-signers"] = signers(&l.cfg.ConfigSigners)
	keys["webapp"] = func(v value) { v.decode("secure webapp", fields{"token": token(&l.secure.token)}) }
	return keys
}

// secureImage decodes the secret variables of one image.
func (l *loader) secureImage(v value) {
	var name string
	vars := EnvVars{}
	have := v.decode("secure image", fields{"name": text(&name), "env-vars": envVars(&vars)})
	v.require(have, "name")
	l.secure.envVars[name] = vars
	v.later(func() {
		if _, ok := l.images.byName[name]; !ok && have["name"] {
			v.fail("the configuration has no disk image %q", name)
		}
	})
}

// minToken is how many characters a token has at least.
const minToken = 16

// token takes a secret that is not to be guessed.
func token(out *string) decodeFunc {
	return func(v value) {
		text(out)(v)
		if len(*out) < minToken {
			v.fail("webapp.token has %d characters, want at least %d; `openssl rand -hex 32` makes one", len(*out), minToken)
		}
	}
}

// overlaySecure lets the secure file win over the other.
func (l *loader) overlaySecure() {
	l.cfg.WebApp.Token = l.secure.token
	l.overlayEvents()
	l.overlayHooks()
	zk, secure := &l.cfg.ZooKeeper, l.secure.zk
	if len(secure.Servers) > 0 {
		zk.Servers, zk.Chroot = secure.Servers, secure.Chroot
	}
	if secure.TLS != nil {
		zk.TLS = secure.TLS
	}
	if secure.Auth != nil {
		zk.Auth = secure.Auth
	}
}
