package listing

import (
	"errors"
	"strings"
	"testing"

	"poolkeeper/zkmodel"
)

func TestSelectKeepsTheOrderOfColumnsAndAllOfJSON(t *testing.T) {
	all := Builds(images()[:1], now)
	some, err := all.Select("reason", "id")
	if err != nil {
		t.Fatal(err)
	}
	var got, before, after strings.Builder
	if err := errors.Join(some.WriteText(&got, false), all.WriteJSON(&before), some.WriteJSON(&after)); err != nil {
		t.Fatal(err)
	}
	want := "| ID                                         | Reason                         |\n"
	if !strings.Contains(got.String(), want) {
		t.Errorf("got\n%s\nwant the header\n%s", got.String(), want)
	}
	if before.String() != after.String() {
		t.Errorf("JSON changed:\n%s\nbefore\n%s", after.String(), before.String())
	}
}

func TestSelectNamesTheColumns(t *testing.T) {
	for _, key := range []string{"", "nope", "paused" /* JSON only */} {
		_, err := Builds(nil, now).Select("id", key)
		if !errors.Is(err, ErrColumn) || !strings.Contains(err.Error(), "id, image, builder") {
			t.Errorf("select %q: %v, want ErrColumn and the names", key, err)
		}
	}
}

func TestLabels(t *testing.T) {
	pool := func(name, data string) *zkmodel.Component { return zkmodel.DecodeComponent(name, []byte(data)) }
	table := Labels([]*zkmodel.Component{
		pool("a0", `{"hostname": "a", "provider_name": "p1", "name": "main", "supported_labels": ["label-1", "label-0"]}`),
		pool("a1", `{"hostname": "a", "provider_name": "p0", "name": "main", "supported_labels": ["label-1"]}`),
		pool("b0", `{"hostname": "b", "provider_name": "p0", "name": "main", "supported_labels": ["label-1"]}`),
		pool("c0", `not JSON`),
	})
	var text, json strings.Builder
	if err := errors.Join(table.WriteText(&text, false), table.WriteJSON(&json)); err != nil {
		t.Fatal(err)
	}
	if want := "+---------+\n| Label   |\n+---------+\n| label-0 |\n| label-1 |\n+---------+\n"; text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
	want := `[{"label": "label-0", "pools": ["p1-main"], "launchers": ["a"]},` + "\n" +
		` {"label": "label-1", "pools": ["p0-main","p1-main"], "launchers": ["a","b"]}]` + "\n"
	if json.String() != want {
		t.Errorf("got\n%s\nwant\n%s", json.String(), want)
	}
}
