package browser

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"slices"
)

// Small is a picture with its 128 most frequent colours: a page has few that matter, and a clone
// has all pictures.
func Small(picture []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, fmt.Errorf("make picture small: %w", err)
	}
	counts := map[color.RGBA]int{}
	for y := range full.Bounds().Dy() {
		for x := range full.Bounds().Dx() {
			counts[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++ //nolint:forcetypeassert // the model's own
		}
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	for _, c := range colours[:min(128, len(colours))] {
		palette = append(palette, c)
	}
	small := image.NewPaletted(full.Bounds(), palette)
	draw.Draw(small, small.Bounds(), full, image.Point{}, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small); err != nil {
		return nil, fmt.Errorf("make picture small: %w", err)
	}
	return out.Bytes(), nil
}
