// Is the format that auto takes the fastest? Generated matrices to which no model is fitted, and what a report of them
// says about choices.

package benchmark

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/spmmrun/spmm/dtype"
)

// choiceKinds write a matrix of a kind. Its size and other figures are drawn. Rows times columns stay below 4·10⁸, so
// that every format can be packed.
var choiceKinds = []func(r *rand.Rand) string{
	func(r *rand.Rand) string { // a graph without structure
		return fmt.Sprintf("gen:uniform,rows=%d,cols=%d,nnz-per-row=%d",
			drawn(r, 200, 20000), drawn(r, 500, 20000), drawn(r, 1, 64))
	},
	func(r *rand.Rand) string { // a pruned layer
		return fmt.Sprintf("gen:uniform,rows=%d,cols=%d,density=%.3f",
			16*drawn(r, 8, 256), 16*drawn(r, 8, 256), float64(drawn(r, 5, 600))/1000)
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("gen:uniform,rows=%d,cols=%d,density=%.3f,jitter=0.8",
			drawn(r, 200, 4000), drawn(r, 200, 4000), float64(drawn(r, 5, 300))/1000)
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("gen:vector,rows=%d,cols=%d,v=%d,density=%.3f",
			32*drawn(r, 8, 128), 32*drawn(r, 8, 128), 4<<r.IntN(4), float64(drawn(r, 10, 400))/1000)
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("gen:block,rows=%d,cols=%d,block=%d,density=%.3f",
			64*drawn(r, 8, 128), 64*drawn(r, 8, 128), 4<<r.IntN(4), float64(drawn(r, 4, 200))/1000)
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("gen:nm,rows=%d,cols=%d,n=%d,m=%d,v=%d",
			64*drawn(r, 4, 64), 64*drawn(r, 4, 64), 1+r.IntN(2), 4<<r.IntN(3), 1<<(5*r.IntN(2)))
	},
	func(r *rand.Rand) string {
		rows := drawn(r, 500, 20000)
		band := drawn(r, 2, 200)
		return fmt.Sprintf("gen:banded,rows=%d,cols=%d,band=%d,density=%.2f",
			rows, rows, band, float64(drawn(r, 10, 100))/100)
	},
	func(r *rand.Rand) string {
		rows := drawn(r, 500, 20000)
		return fmt.Sprintf("gen:powerlaw,rows=%d,cols=%d,nnz-per-row=%d,alpha=%.1f",
			rows, rows, drawn(r, 2, 32), 2+float64(r.IntN(12))/10)
	},
	func(r *rand.Rand) string { // one long row among short ones
		rows := drawn(r, 500, 20000)
		return fmt.Sprintf("gen:onedense,rows=%d,cols=%d,nnz-per-row=%d",
			rows, rows, drawn(r, 1, 16))
	},
	func(r *rand.Rand) string {
		return fmt.Sprintf("gen:rmat,scale=%d,degree=%d",
			9+r.IntN(6), drawn(r, 2, 32))
	},
	func(r *rand.Rand) string { return fmt.Sprintf("gen:stencil,side=%d", 6+r.IntN(21)) },
	func(r *rand.Rand) string {
		rows := drawn(r, 500, 20000)
		return fmt.Sprintf("gen:diagonal,rows=%d,cols=%d",
			rows, rows)
	},
}

// drawn is a whole number from lo to hi, each factor of two as likely as another.
func drawn(r *rand.Rand, lo, hi int) int {
	for x, times := lo, 1; ; times++ {
		if x *= 2; x >= hi {
			at := lo << r.IntN(times)
			return min(hi, at+r.IntN(at))
		}
	}
}

// ChoiceMatrices are that many matrices of a seed, of the kinds in turn.
func ChoiceMatrices(count int, seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 29))
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf("%s,seed=%d", choiceKinds[i%len(choiceKinds)](r), i))
	}
	return all
}

// ChoiceProducts are products, each by itself, with auto, or Tuned, and its rivals; of more than `most` that many,
// drawn by the seed, unless it is 0.
func ChoiceProducts(of Products, tuned bool, most int, seed uint64) []Products {
	of.Formats, of.Modes, of.Ways = []string{"auto", Rivals}, []string{Fast}, []Way{{}}
	if tuned {
		of.Formats[0] = Tuned
	}
	var all []Products
	for _, m := range of.Matrices {
		for _, n := range of.Columns {
			for _, p := range of.Precisions {
				x := of
				x.Matrices, x.Columns, x.Precisions = []string{m}, []int{n}, []dtype.Type{p}
				all = append(all, x)
			}
		}
	}
	if most == 0 || most >= len(all) {
		return all
	}
	r := rand.New(rand.NewPCG(seed, 31))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:most]
	order := map[string]int{} // a matrix's products in a row, so that it is made once
	for i := range all {
		if m := all[i].Matrices[0]; order[m] == 0 {
			order[m] = i + 1
		}
	}
	slices.SortStableFunc(all, func(x, y Products) int {
		return cmp.Compare(order[x.Matrices[0]], order[y.Matrices[0]])
	})
	return all
}

// Choice is the kernel that auto took for a product, compared with the fastest of its rivals.
type Choice struct {
	Case
	Took        string  `json:"took"` // as FORMAT/VARIANT
	US          float64 `json:"us"`
	PredictedUS float64 `json:"predicted_us"`
	Best        string  `json:"best"`
	BestUS      float64 `json:"best_us"`
	BestPredUS  float64 `json:"best_predicted_us"`
	Over        float64 `json:"over"` // US/BestUS; 1 where both are one kernel
}

// Choices sums up choices.
type Choices struct {
	Products int      `json:"products"`
	Mean     float64  `json:"mean"` // geometric
	Worst    float64  `json:"worst"`
	All      []Choice `json:"choices"` // the worst first
}

// NewChoices finds the choices of a report of ChoiceProducts.
func NewChoices(r *Report) Choices {
	rivals := map[Case][]*Result{}
	without := func(c Case) Case { c.Format = ""; return c }
	for i := range r.Results {
		if x := &r.Results[i]; x.Measured() && !chosen(x) {
			rivals[without(x.Case)] = append(rivals[without(x.Case)], x)
		}
	}
	var out Choices
	var over []float64
	for i := range r.Results {
		x := &r.Results[i]
		of := rivals[without(x.Case)]
		if !chosen(x) || !x.Measured() || len(of) == 0 {
			continue
		}
		c := newChoice(x, of)
		out.All = append(out.All, c)
		over = append(over, c.Over)
		out.Worst = max(out.Worst, c.Over)
	}
	if out.Products = len(over); len(over) > 0 {
		out.Mean = GeometricMean(over)
	}
	slices.SortStableFunc(out.All, func(x, y Choice) int { return cmp.Compare(y.Over, x.Over) })
	return out
}

// chosen tells whether auto took the kernel.
func chosen(x *Result) bool { return x.Format == "auto" || x.Format == Tuned }

// newChoice compares what auto took with its rivals.
func newChoice(x *Result, rivals []*Result) Choice {
	best := slices.MinFunc(rivals, func(x, y *Result) int { return cmp.Compare(x.Median, y.Median) })
	c := Choice{
		Case: x.Case, Took: x.Chosen + "/" + x.Variant, US: x.Median, Best: best.Format, BestUS: best.Median, Over: 1,
	}
	for _, y := range rivals {
		if y.Format == c.Took && y.Predicted != nil {
			c.PredictedUS = y.Predicted.US
		}
	}
	if best.Predicted != nil {
		c.BestPredUS = best.Predicted.US
	}
	if c.Took != c.Best {
		c.Over = max(1, x.Median/best.Median)
	}
	return c
}

// mostPrinted is how many of the worst choices are printed.
const mostPrinted = 10

// Print prints the mean, the worst and the ten worst choices with what was predicted.
func (c *Choices) Print(w io.Writer) error {
	const sum = "%d products: auto takes %.3f times as long as the fastest (geometric mean), %.3f at worst\n\n"
	if _, err := fmt.Fprintf(w, sum, c.Products, c.Mean, c.Worst); err != nil {
		return err
	}
	rows := [][]string{{"over", "matrix", "N", "precision", "device", "auto took", "µs", "predicted",
		"the fastest is", "µs", "predicted"}}
	for _, x := range c.All[:min(mostPrinted, len(c.All))] {
		rows = append(rows, []string{
			fmt.Sprintf("%.2f", x.Over), short(x.Matrix), fmt.Sprint(x.N), x.Precision, x.Backend, x.Took, number(x.US),
			number(x.PredictedUS), x.Best, number(x.BestUS), number(x.BestPredUS),
		})
	}
	return align(w, rows)
}

// Write writes all choices as JSON.
func (c *Choices) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(c)
}
