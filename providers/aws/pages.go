package aws

import (
	"context"
	"fmt"
	"iter"
	"reflect"

	"poolkeeper/providers"
)

// mostPages are more than any list has: a page has up to 1000 entries.
const mostPages = 10_000

// pager is a list of the SDK's, page by page.
type pager[Out, Options any] interface {
	HasMorePages() bool
	NextPage(ctx context.Context, options ...func(*Options)) (*Out, error)
}

// pagesOf are the pages of a list: all of them, or an error at the end. The SDK asks without end where one page
// is followed by itself, and takes an answer without a list for an empty one, by which all would be gone.
func pagesOf[Out, Options any](ctx context.Context, pages pager[Out, Options]) iter.Seq2[*Out, error] {
	return func(yield func(*Out, error) bool) {
		asked := map[string]bool{"": true} // the first page is
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err == nil {
				err = sound(page, pages.HasMorePages(), asked)
			}
			if !yield(page, err) || err != nil {
				return
			}
		}
	}
}

// sound refuses a last page that has no list, and one that is followed by one that was asked for already.
func sound(page any, more bool, asked map[string]bool) error {
	v, next, listed := reflect.ValueOf(page).Elem(), "", false
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		switch field := v.Field(i).Interface().(type) {
		case *string:
			switch v.Type().Field(i).Name {
			case "NextToken", "NextContinuationToken", "NextKeyMarker", "NextUploadIDMarker":
				if field != nil && *field != "" {
					next += *field + "\x00"
				}
			case "Name", "Bucket": // of S3, which does not write empty lists
				listed = listed || field != nil
			}
		default:
			listed = listed || v.Field(i).Kind() == reflect.Slice && !v.Field(i).IsNil()
		}
	}
	switch {
	case !more && !listed:
		return errNoList
	case more && (asked[next] || len(asked) == mostPages):
		return fmt.Errorf("%w: the list has no end", providers.ErrTransient)
	}
	asked[next] = true
	return nil
}

// errNoList is an answer that says neither what there is nor that there is nothing.
var errNoList = fmt.Errorf("%w: the answer has no list", providers.ErrTransient)

// theOne is the entry of an answer that was asked for, by what name tells; nil is none. What looks like Amazon need not heed what it is asked for.
func theOne[T any](list []T, want string, name func(*T) *string) *T {
	for i := range list {
		if got := name(&list[i]); got != nil && *got == want && want != "" {
			return &list[i]
		}
	}
	return nil
}

// idOf is the id of an entry of a list, which may not lack.
func idOf(what string, id *string) (string, error) {
	if id == nil || *id == "" {
		return "", fmt.Errorf("%w: the list has %s without an id", providers.ErrTransient, what)
	}
	return *id, nil
}
