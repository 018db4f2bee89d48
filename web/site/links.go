package site

import (
	"fmt"
	"net/url"

	"poolkeeper/configs"
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

// historyPath is the page of what has ended.
const historyPath = "/history"

// ended leads to what became of the things of a site, by pairs of key and value; where there
// is no history, to nothing.
func (s *Site) ended(pairs ...string) []fact {
	if !s.History {
		return nil
	}
	return []fact{{Name: "Ended", Cell: linked(layout.Link{Text: "history of 30 days", To: historyOf(pairs...)})}}
}

func historyOf(pairs ...string) string {
	values := url.Values{"last": {"30d"}}
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return historyPath + "?" + values.Encode()
}

// absent is the error of a thing that nothing has the name of, with the name that may have been meant.
func absent(kind, name string, known []string) error {
	return fmt.Errorf("%s %s: %w%s", kind, name, layout.ErrNotFound, configs.Similar(name, known))
}

// idsOf are those of a list.
func idsOf[T any](list []T, id func(T) string) (ids []string) {
	for _, one := range list {
		ids = append(ids, id(one))
	}
	return ids
}

// gone is the error of a thing that has no record: where there is a history, that is where it leads.
func (s *Site) gone(kind, id string, known []string) error {
	if s.History {
		return &layout.RedirectError{To: historyOf("kind", kind, "id", id)}
	}
	return absent(kind, id, known)
}
