package site

import (
	"net/url"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
)

func imageLink(image string) layout.Link {
	return to(image, "/images/"+url.PathEscape(image))
}

func buildLink(image, build string) layout.Link {
	return to(image+"-"+build, "/builds/"+url.PathEscape(image+"-"+build))
}

func nodeLink(id string) layout.Link { return to(id, "/nodes/"+url.PathEscape(id)) }

func requestLink(id string) layout.Link { return to(id, "/requests/"+url.PathEscape(id)) }

func providerLink(name string) layout.Link { return to(name, "/providers/"+url.PathEscape(name)) }

func daemonLink(kind, host string) layout.Link {
	return to(host, "/daemons/"+url.PathEscape(kind)+"/"+url.PathEscape(host))
}

// to is a link; nothing leads nowhere.
func to(text, path string) layout.Link {
	if text == "" {
		return layout.Link{}
	}
	return layout.Link{Text: text, To: path}
}

// links are links to several things.
func links(names []string, link func(string) layout.Link) []layout.Link {
	list := make([]layout.Link, 0, len(names))
	for _, name := range names {
		list = append(list, link(name))
	}
	return list
}

// imageOf is what a node was made from: a build of ours, or what its cloud calls it.
func (s *snapshot) imageOf(n *zkmodel.Node) layout.Link {
	if key, err := zkmodel.ParseUploadPath(n.ImageID); err == nil {
		l := buildLink(key.Image, key.Build)
		if !s.hasBuild(key.Image, key.Build) {
			l.To = "" // it was deleted since
		}
		return l
	}
	return layout.Link{Text: n.ImageID}
}

// listTo is a list that is filtered by one thing.
func listTo(path, key, value string) string { return path + "?" + url.Values{key: {value}}.Encode() }
