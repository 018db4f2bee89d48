package layout

import (
	"html/template"
	"reflect"
	"unicode/utf8"

	"poolkeeper/zkmodel/listing"
)

// maxShown is how many bytes of a text of a record the status page shows.
const maxShown = 4 << 10

// clean makes all text of a view fit to be shown: records hold what anybody has
// written. v is a pointer to a struct, or a slice.
func clean(v any) { cleanValue(reflect.ValueOf(v)) }

func cleanValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			cleanValue(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			cleanValue(field)
		}
	case reflect.Slice:
		for i := range v.Len() {
			cleanValue(v.Index(i))
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[template.HTML]() { // markup of ours, whose texts were cleaned
			return
		}
		if text := v.String(); v.CanSet() && Visible(text) != text {
			v.SetString(Visible(text))
		}
	default:
	}
}

// Visible is text without what moves the cursor or changes the direction of
// writing, and cut off where it is too long.
func Visible(text string) string {
	if len(text) > maxShown {
		cut := maxShown
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return listing.Visible(text)
}
