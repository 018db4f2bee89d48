package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/recipe"
)

// Report are the flags of what is told in lines, and is no table.
type Report struct {
	Output string `short:"o" enum:"table,json,json-v1,yaml" default:"table" placeholder:"FORM" help:"How to print: table, which is text; json; json-v1 or yaml, documents of version v1 (${default})."`
}

// Document prints a report as a document, unless it was asked for as text: then it reports false. json
// is what -o json always printed, v1 the document of ours.
func (r Report) Document(out io.Writer, json, v1 any) (bool, error) {
	switch r.Output {
	case "json":
		return true, app.PrintJSON(out, json)
	case "json-v1":
		return true, app.PrintJSON(out, v1)
	case "yaml":
		return true, writeYAML(out, v1)
	}
	return false, nil
}

// writeYAML writes a document as YAML.
func writeYAML(out io.Writer, v1 any) error {
	var text bytes.Buffer
	if err := app.PrintJSON(&text, v1); err != nil {
		return err
	}
	return listing.YAML(out, text.Bytes())
}

// Head begins a document of ours.
type Head struct {
	Version string    `json:"version"`
	Kind    string    `json:"kind"`
	Time    time.Time `json:"time"`
}

// HeadOf is the head of a document that is made now.
func HeadOf(kind string) Head {
	return Head{listing.Version, kind, time.Now().UTC().Truncate(time.Second)}
}

// List is a document of ours with items.
type List[T any] struct {
	Head
	Items []T `json:"items"`
}

// Part is a table that is printed with others.
type Part struct {
	Key   string // in documents
	Title string // before it, in text
	Table *listing.Table
}

// Parts prints several tables: in text one behind the other, each behind its title; in documents side by
// side. v1 is the object that the document of ours begins with, json the text of that of -o json.
func (f Forms) Parts(a *app.App, json string, v1 any, parts ...Part) error {
	for _, part := range parts {
		a.TellBroken(part.Table.Broken())
	}
	switch f.Output {
	case "json":
		return joinJSON(a.Stdout, json, parts)
	case "json-v1", "yaml":
		return f.joinDocument(a.Stdout, v1, parts)
	}
	for _, part := range parts {
		if f.Output != "name" {
			if _, err := io.WriteString(a.Stdout, part.Title); err != nil {
				return err
			}
		}
		if err := f.Write(a.Stdout, part.Table); err != nil {
			return err
		}
	}
	return nil
}

// joinJSON writes tables as -o json has them, into one object.
func joinJSON(out io.Writer, first string, parts []Part) error {
	var all bytes.Buffer
	all.WriteString(strings.TrimSuffix(first, "}"))
	for _, part := range parts {
		all.WriteString(`, "` + part.Key + `": `)
		if err := part.Table.WriteJSON(&all); err != nil {
			return err
		}
	}
	all.WriteString("}\n")
	_, err := out.Write(all.Bytes())
	return err
}

// joinDocument writes a document of ours with tables in it.
func (f Forms) joinDocument(out io.Writer, first any, parts []Part) error {
	text, err := json.Marshal(first)
	if err != nil {
		return err
	}
	text = bytes.TrimSuffix(text, []byte("}"))
	for _, part := range parts {
		items, err := part.Table.Items()
		if err != nil {
			return err
		}
		text = append(append(text, `, "`+part.Key+`": `...), items...)
	}
	_, err = Report{f.Output}.Document(out, nil, json.RawMessage(append(text, '}')))
	return err
}

// page is how long after a page no other is shown.
const page = time.Second

// Paged is a report that is followed.
type Paged struct {
	Watched // of which Table and Read are not used
	// Make makes the report as it is now.
	Make func(ctx context.Context, m *zkmodel.Mirror, s *recipe.Session) (Page, error)
}

// Page is a report as it is at a moment.
type Page interface {
	// Print writes it as people read it.
	Print(out io.Writer, width int) error
}

// Follow shows a report, and shows it again when something of it has changed, until ctx ends: on a terminal over the
// one before, else behind it. -o json-v1 prints a document a line.
func (r Report) Follow(ctx context.Context, a *app.App, client *recipe.Client, p Paged) error {
	if r.Output != "table" && r.Output != "json-v1" {
		return errReportForm
	}
	s := newShower(Flags{Forms: Forms{Output: r.Output}}, a)
	return p.loop(ctx, s, client, page, func(mirror *zkmodel.Mirror) func() error {
		return func() error {
			session, err := client.Session(ctx)
			if err == nil {
				err = r.again(ctx, s, session, func(ctx context.Context) (Page, error) { return p.Make(ctx, mirror, session) })
			}
			if errors.Is(err, recipe.ErrSessionLost) {
				return nil // it is shown again once there is another
			}
			return err
		}
	})
}

// errReportForm is errForm of a report.
var errReportForm = errors.New("--watch goes with -o table and json-v1 only")

// again makes a page, and shows it.
func (r Report) again(ctx context.Context, s *shower, session *recipe.Session, made func(context.Context) (Page, error)) error {
	bound, release := session.Bind(ctx)
	defer release()
	one, err := made(bound)
	if err != nil {
		return err
	}
	if r.Output == "json-v1" {
		return json.NewEncoder(s.app.Stdout).Encode(one)
	}
	var text bytes.Buffer
	if err := one.Print(&text, app.Width(s.app.Stdout)); err != nil {
		return err
	}
	if s.terminal {
		return s.draw(text.String())
	}
	between := ""
	if s.begun {
		between = "\n"
	}
	s.begun = true
	_, err = io.WriteString(s.app.Stdout, between+text.String())
	return err
}
