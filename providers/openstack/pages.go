package openstack

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/pagination"
)

// errNoList is an answer that is no list, or a list that never ends.
var errNoList = errors.New("the answer is no whole list")

// pages collects a list of several pages, whole or not at all; name is what the services call it.
// The library's own pages take null for an empty list, on which machines and images that are there
// would be given up, and follow a page that follows itself until the memory is full.
func pages[T any](ctx context.Context, pager pagination.Pager, name string) ([]T, error) {
	var all []T
	asked := map[string]bool{}
	of := func(r pagination.PageResult) pagination.Page { return listPage{r, name} }
	err := pager.WithPageCreator(of).EachPage(ctx, func(_ context.Context, page pagination.Page) (bool, error) {
		var some []T
		if err := page.(listPage).ExtractIntoSlicePtr(&some, name); err != nil { //nolint:forcetypeassert // of makes no others
			return false, err
		}
		all = append(all, some...)
		next, err := page.NextPageURL()
		if asked[next] {
			err = fmt.Errorf("%w: a page of %s comes again and again", errNoList, name)
		}
		asked[next] = true
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// listPage is one page of a list.
type listPage struct {
	pagination.PageResult

	name string
}

// GetBody implements pagination.Page.
func (p listPage) GetBody() any { return p.Body }

// IsEmpty implements pagination.Page: false with an error for what has no list at all.
func (p listPage) IsEmpty() (bool, error) {
	body, _ := p.Body.(map[string]any)
	list, ok := body[p.name].([]any)
	if !ok {
		return false, fmt.Errorf("%w: it has no %s", errNoList, p.name)
	}
	return len(list) == 0, nil
}

// NextPageURL implements pagination.Page: Glance tells the query, the others the address.
func (p listPage) NextPageURL() (string, error) {
	body := map[string]any{}
	if err := p.ExtractInto(&body); err != nil {
		return "", err
	}
	if text, ok := body["next"].(string); ok && text != "" {
		next, err := url.Parse(text)
		if err != nil {
			return "", fmt.Errorf("%w: %w", errNoList, err)
		}
		here := p.URL
		here.RawQuery = next.RawQuery
		return here.String(), nil
	}
	if body[p.name+"_links"] == nil {
		return "", nil
	}
	var links []gophercloud.Link
	if err := p.ExtractIntoSlicePtr(&links, p.name+"_links"); err != nil {
		return "", err
	}
	return gophercloud.ExtractNextURL(links)
}
