// How many times as long as one of ours the fastest peer takes.

package benchmark

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/spmmrun/spmm/internal/printable"
)

// Versus is how one of ours compares with the fastest of the peers, for one number of columns.
type Versus struct {
	By        string  `json:"by"` // backend, format, mode and way, and the precision
	N         int     `json:"n"`
	Products  int     `json:"products"`             // that it and a peer were measured on
	Mean      float64 `json:"mean"`                 // geometric mean of the fastest peer's time over its own
	Least     float64 `json:"least"`                // the worst of these, 0 if that was not kept
	LeastAt   string  `json:"least_at,omitempty"`   // the matrix of that
	Slower    int     `json:"slower"`               // products at which a peer is faster
	LeastPeer string  `json:"least_peer,omitempty"` // who that is
}

// ofPeer tells whether a peer has measured a result: it does not choose formats.
func (r *Result) ofPeer() bool { return r.Chosen == "" }

// fastestPeers returns the fastest peer at each product.
func (r *Report) fastestPeers() map[product]*Result {
	fastest := map[product]*Result{}
	for i := range r.Results {
		x := &r.Results[i]
		if b, ok := fastest[x.product()]; x.Measured() && x.ofPeer() && (!ok || x.Median < b.Median) {
			fastest[x.product()] = x
		}
	}
	return fastest
}

// FastestPeer returns the result of the fastest peer at the product of a result, nil if there is none.
func (r *Report) FastestPeer(of *Result) *Result { return r.fastestPeers()[of.product()] }

// Versus compares each of ours, for each number of columns, with the fastest peer at each product. What was kept of
// others comes first.
func (r *Report) Versus() []Versus {
	fastest := r.fastestPeers()
	type key struct {
		by string
		n  int
	}
	var keys []key
	all, ratios := map[key]*Versus{}, map[key][]float64{}
	for i := range r.Results {
		x := &r.Results[i]
		peer := fastest[x.product()]
		if !x.Measured() || x.ofPeer() || peer == nil {
			continue
		}
		k := key{x.By() + " " + x.Precision, x.N}
		b, ok := all[k]
		if !ok {
			b = &Versus{By: k.by, N: x.N}
			all[k], keys = b, append(keys, k)
		}
		ratio := peer.Median / x.Median
		ratios[k] = append(ratios[k], ratio)
		if ratio < 1 {
			b.Slower++
		}
		if b.Products++; b.Products == 1 || ratio < b.Least {
			b.Least, b.LeastAt, b.LeastPeer = ratio, x.Matrix, peer.By()
		}
	}
	slices.SortStableFunc(keys, func(x, y key) int { return cmp.Compare(x.n, y.n) })
	out := slices.Clone(r.Kept)
	for _, k := range keys {
		all[k].Mean = GeometricMean(ratios[k])
		out = append(out, *all[k])
	}
	return out
}

var versusHead = []string{"by", "N", "products", "fastest peer / it", "least", "at", "peer", "peer faster"}

// versusRows are the cells of the table of Versus.
func (r *Report) versusRows() [][]string {
	var out [][]string
	for _, b := range r.Versus() {
		out = append(out, []string{
			printable.String(b.By), strconv.Itoa(b.N), strconv.Itoa(b.Products), fmt.Sprintf("%.2f", b.Mean),
			fmt.Sprintf("%.2f", b.Least), short(b.LeastAt), printable.String(b.LeastPeer), strconv.Itoa(b.Slower),
		})
	}
	return out
}
