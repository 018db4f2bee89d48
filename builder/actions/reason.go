package actions

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// longestReason keeps a reason one line that a table can show.
const longestReason = 400

// Reason is an error in one line, for the record.
func Reason(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > longestReason {
		text = strings.ToValidUTF8(text[:longestReason], "") + " …"
	}
	return text
}

// sizes lists the files of a build for people.
func sizes(files map[string]zkmodel.ImageFile) string {
	var list []string
	for _, format := range slices.Sorted(maps.Keys(files)) {
		list = append(list, format+" "+humanize.IBytes(uint64(max(files[format].Size, 0))))
	}
	return strings.Join(list, ", ")
}

// Held reports whether somebody else is at it.
func Held(err error) bool {
	return errors.Is(err, recipe.ErrLocked) || errors.Is(err, zkmodel.ErrBusy) || errors.Is(err, zkmodel.ErrInProgress)
}
