package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// idKey is the key that export-image-data adds to the record of a build or upload: the transaction that created the
// record, which verdicts, pins and canaries name. Nodepool's import-image-data keeps it as any key that it does not know.
const idKey = "poolkeeper_czxid"

var idAtEnd = regexp.MustCompile(`, "` + idKey + `": ([1-9][0-9]{0,18})\}$`)

// withID adds the creation id to a record; a text that is no JSON object with keys stays as it is.
func withID(text string, czxid int64) string {
	added := fmt.Sprintf(`%s, "%s": %d}`, strings.TrimSuffix(text, "}"), idKey, czxid)
	if czxid == 0 || !strings.HasSuffix(text, "}") || !json.Valid([]byte(added)) {
		return text
	}
	return added
}

// withoutID is a record without the key that withID adds, and the creation id; 0 if the record has none.
func withoutID(text string) (string, int64) {
	found := idAtEnd.FindStringSubmatchIndex(text)
	if found == nil {
		return text, 0
	}
	czxid, err := strconv.ParseInt(text[found[2]:found[3]], 10, 64)
	if err != nil {
		return text, 0
	}
	return text[:found[0]] + "}", czxid
}

// WithIDs is Data whose builds and uploads have their creation ids, for a file.
func (d Data) WithIDs(ctx context.Context, s *recipe.Session) (Data, error) {
	all := make(Data, len(d))
	for at, text := range d {
		all[at] = text
		if p, err := placeOf(at); err != nil || p.kind != build && p.kind != upload {
			continue
		}
		stat, _, err := s.Exists(ctx, at)
		if err != nil {
			return nil, err
		}
		all[at] = withID(text, stat.Czxid)
	}
	return all, nil
}

// takeIDs are Data without creation ids, and the ids by path.
func (d Data) takeIDs() (plain Data, made map[string]int64) {
	plain, made = make(Data, len(d)), map[string]int64{}
	for at, text := range d {
		var czxid int64
		if plain[at], czxid = withoutID(text); czxid != 0 {
			made[at] = czxid
		}
	}
	return plain, made
}

// fitKept rewrites the verdicts, pins and canaries that the tree kept, so that they name the builds and uploads by the
// transactions that created them in this tree.
func fitKept(ctx context.Context, s *recipe.Session, made map[string]int64) error {
	if len(made) == 0 {
		return nil
	}
	kept := &ownReader{s: s}
	kept.walk(ctx, zkmodel.VerdictsRoot)
	kept.walk(ctx, zkmodel.CanariesRoot)
	if kept.err != nil {
		return fmt.Errorf("read verdicts and canaries: %w", kept.err)
	}
	for _, r := range kept.list {
		data, stat, err := s.Get(ctx, r.Path)
		if errors.Is(err, recipe.ErrNoNode) {
			continue
		}
		if err == nil {
			r, err = fit(ctx, s, recordOf(r.Path, data), made)
		}
		if err == nil && !r.equal(data) {
			_, err = s.Set(ctx, r.Path, r.data(), stat.Version)
		}
		if err != nil {
			return fmt.Errorf("rewrite the references of %s: %w", r.Path, err)
		}
	}
	return nil
}
