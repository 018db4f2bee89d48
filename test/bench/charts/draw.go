package main

import (
	"bytes"
	"fmt"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// tableFile has the growth of each figure, beside the charts.
const tableFile = "README.md"

// draw makes all charts of which there are at least two sizes, and the table.
func draw(points []point) (map[string][]byte, error) {
	files := map[string][]byte{}
	var table bytes.Buffer
	fmt.Fprint(&table, "# How needs grow\n\nDrawn by `make bench-scale` of what it measured ([series.txt](series.txt)), and by `make sim-scale` of what it counted ([simulated.txt](simulated.txt)); how to read it: docs/scale.md.\n\n| figure | over | from | to | grows as size to the power | steepest step |\n|---|---|---|---|---|---|\n")
	for _, c := range charts {
		first := c.line(points, c.units[0])
		if len(first) < 2 {
			continue
		}
		svg, err := c.svg(points)
		if err != nil {
			return nil, fmt.Errorf("draw %s: %w", c.file, err)
		}
		files[c.file] = svg
		a, b := first[0], first[len(first)-1]
		e, from, to := steepest(first)
		fmt.Fprintf(&table, "| [%s](%s), %s | %s | %s: %s | %s: %s | %.2f | %.2f (%s to %s) |\n", c.title, c.file, quantity(c.units[0]), c.over,
			number(a.x), figure(a.y, c.label), number(b.x), figure(b.y, c.label), growth(first), e, number(from.x), number(to.x))
	}
	files[tableFile] = table.Bytes()
	return files, nil
}

// svg is one chart, with both axes by powers of ten where sizes grow so.
func (c chart) svg(points []point) ([]byte, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.over, c.label
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	var least, most float64
	for i, unit := range c.units {
		line := c.line(points, unit)
		if len(line) < 2 {
			continue
		}
		var xys plotter.XYs
		for _, at := range line {
			xys = append(xys, plotter.XY{X: at.x, Y: at.y})
			if least == 0 || at.y < least {
				least = at.y
			}
			most = max(most, at.y)
		}
		drawn, marks, err := plotter.NewLinePoints(xys)
		if err != nil {
			return nil, err
		}
		drawn.Color, marks.Color = plotutil.Color(i), plotutil.Color(i)
		drawn.Dashes, marks.Shape = plotutil.Dashes(i), plotutil.Shape(i)
		p.Add(drawn, marks)
		p.Legend.Add(quantity(unit), drawn, marks)
	}
	first := c.line(points, c.units[0])
	p.X.Tick.Marker = sizes(first)
	p.X.Max = first[len(first)-1].x * 1.05 // room for the last number
	if p.X.Max/first[0].x >= 10 {
		p.X.Scale, p.X.Max = plot.LogScale{}, p.X.Max*1.1
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		p.Y.Min, p.Y.Max = least/2, most*4
	} else {
		p.Y.Min, p.Y.Max = 0, most*1.3
	}
	to, err := p.WriterTo(16*vg.Centimeter, 9*vg.Centimeter, "svg")
	if err != nil {
		return nil, err
	}
	var svg bytes.Buffer
	_, err = to.WriteTo(&svg)
	return svg.Bytes(), err
}

// sizes marks what was measured.
func sizes(line []xy) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, at := range line {
		ticks = append(ticks, plot.Tick{Value: at.x, Label: number(at.x)})
	}
	return ticks
}

// number is a size without a fraction that it does not have.
func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// figure has three digits that count.
func figure(y float64, unit string) string { return fmt.Sprintf("%.4g %s", y, unit) }
