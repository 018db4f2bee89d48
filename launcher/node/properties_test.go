package node

import (
	"testing"

	"poolkeeper/zkmodel"
)

func TestFill(t *testing.T) {
	r := &zkmodel.Request{
		ID: "200-1", NodeTypes: zkmodel.Strings{"a", "b"}, TenantName: "red", RelativePriority: 3, CreatedTime: 1.5,
	}
	for format, want := range map[string]string{
		"plain":                                    "plain",
		"{request.tenant_name}/{request.id}":       "red/200-1",
		"{request.labels}":                         "['a', 'b']",
		"{{{request.relative_priority}}}":          "{3}",
		"{request.created_time}{request.event_id}": "1.5",
	} {
		if got := Fill(format, r); got != want {
			t.Errorf("%q is filled in as %q, want %q", format, got, want)
		}
	}
}
