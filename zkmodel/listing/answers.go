package listing

import (
	"errors"

	"poolkeeper/zkmodel/manage"
)

// Answers lists what daemons say to a command.
func Answers(answers []manage.Answer) *Table {
	t := &Table{kind: "answers", columns: []column{
		{title: "Host", key: "host"},
		{title: "Kind", key: "kind"},
		{title: "Answer", key: "answer"},
		{title: "Text", key: "text"},
		{title: "Name", key: "name", detail: true},
		{title: "Version", key: "version", detail: true},
	}}
	for _, a := range answers {
		said := a.Text
		if a.Err != nil {
			said = a.Err.Error()
		}
		t.rows = append(t.rows, []cell{
			text(a.Daemon.Hostname), text(a.Daemon.Kind), text(answered(a)), text(said), text(a.Daemon.Name), text(a.Daemon.Version),
		})
	}
	return t
}

// answered is an answer in one word.
func answered(a manage.Answer) string {
	switch {
	case errors.Is(a.Err, manage.ErrUnknown):
		return "unknown"
	case errors.Is(a.Err, manage.ErrGone):
		return "gone"
	case errors.Is(a.Err, manage.ErrSilent):
		return "silent"
	case errors.Is(a.Err, manage.ErrBegun):
		return "begun"
	case a.Err != nil:
		return "failed"
	case !a.Done:
		return "refused"
	}
	return "done"
}
