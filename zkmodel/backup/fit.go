package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// fit puts the transactions into a verdict or canary that made its builds and uploads in this
// tree. What it says of one that the backup does not have, or that is not in the tree, stays: it
// means nothing that is there.
func fit(ctx context.Context, s *recipe.Session, r Record, made map[string]int64) (Record, error) {
	f := fitter{s: s, made: made}
	if rest, is := strings.CutPrefix(r.Path, zkmodel.VerdictsRoot+"/"); is {
		f.image = rest
	} else if parts := strings.Split(strings.TrimPrefix(r.Path, zkmodel.CanariesRoot+"/"), "/"); len(parts) > 1 {
		f.image = parts[1]
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(r.data()))
	d.UseNumber()
	_ = d.Decode(&value) // of what is no JSON nothing is known, as before
	f.walk(ctx, value)
	if f.err != nil || !f.changed {
		return r, f.err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return r, err
	}
	return recordOf(r.Path, text), nil
}

// fitter goes through one record.
type fitter struct {
	s     *recipe.Session
	image string
	made  map[string]int64 // by path, in the tree of the backup

	changed bool
	err     error
}

func (f *fitter) walk(ctx context.Context, value any) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			f.walk(ctx, one)
		}
	case map[string]any:
		if id, is := value["build"].(string); is {
			f.replace(ctx, value, "build_czxid", zkmodel.BuildPath(f.image, id))
		}
		if at, is := value["upload"].(string); is {
			f.replace(ctx, value, "upload_czxid", at)
		}
		for _, one := range value {
			f.walk(ctx, one)
		}
	}
}

// replace puts the transaction in that made a record in this tree, for that of the backup's.
func (f *fitter) replace(ctx context.Context, object map[string]any, key, at string) {
	number, is := object[key].(json.Number)
	if !is || f.err != nil {
		return
	}
	before, err := number.Int64()
	if err != nil || before == 0 || before != f.made[at] {
		return
	}
	stat, there, err := f.s.Exists(ctx, at)
	if f.err = err; err == nil && there && stat.Czxid != before {
		object[key], f.changed = stat.Czxid, true
	}
}
