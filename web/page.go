package web

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"fmt"
	"html/template"
)

//go:embed status.html
var pageText string

//go:embed status.css
var pageStyle string

// page is the status page's template.
type page struct {
	template  *template.Template
	styleHash string // of the style sheet: what else is on the page styles nothing
}

// newPage reads the template, which is part of the program.
func newPage() *page {
	sum := sha256.Sum256([]byte(pageStyle))
	style := func() template.CSS { return template.CSS(pageStyle) } // our own, as it is
	return &page{
		template:  template.Must(template.New("status").Funcs(template.FuncMap{"style": style}).Parse(pageText)),
		styleHash: "sha256-" + base64.StdEncoding.EncodeToString(sum[:]),
	}
}

// render writes the page.
func (p *page) render(v view) ([]byte, error) {
	var out bytes.Buffer
	if err := p.template.Execute(&out, v); err != nil {
		return nil, fmt.Errorf("write status page: %w", err)
	}
	return out.Bytes(), nil
}
