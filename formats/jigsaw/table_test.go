// The tables of docs/jigsaw.md, held against the code:
//
//	go test ./formats/jigsaw -run TestTable -write
//
// The paper's own rule is here: every strip of a block takes the same 16 columns (§3.2, Figure 5).

package jigsaw

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
	"github.com/spmmrun/spmm/formats/internal/par"
)

var writeTable = flag.Bool("write", false, "write the tables of docs/jigsaw.md")

func TestTable(t *testing.T) {
	formatstest.Table(t, "../../docs/jigsaw.md", table(t), *writeTable)
}

var (
	tableCols   = []int{64, 128, 256, 512, 576, 1024, 1152, 2048, 2304, 4608}
	tableBlocks = []int{16, 32, 64}
)

const tableRows = 256

// table measures masks of uniformly random vectors with columns as many as the paper's data set has.
func table(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| zeros | v | 16: reordered | tiles at once | width | 32: reordered | tiles at once | width | 64: reordered | tiles at once | width | here, 16 | here, 64 |\n")
	b.WriteString("|" + strings.Repeat(" --- |", 13) + "\n")
	for _, zeros := range []int{70, 80, 90, 95, 98} {
		for _, v := range []int{2, 4, 8} {
			fmt.Fprintf(&b, "| %d %% | %d |", zeros, v)
			var as []*formats.CSR[float32]
			for _, k := range tableCols {
				a, err := gen.CSR(fmt.Sprintf("gen:vector,rows=%d,cols=%d,v=%d,sparsity=%v,values=ones,seed=%d", tableRows, k, v, float64(zeros)/100, zeros))
				if err != nil {
					t.Fatal(err)
				}
				as = append(as, a)
			}
			for _, block := range tableBlocks {
				reports := make([]report, len(as))
				par.Each(len(as), 1, func(i int) { reports[i] = asPublished(as[i], block) })
				fmt.Fprintf(&b, " %s |", summary(reports))
			}
			for _, block := range []int{16, 64} {
				fmt.Fprintf(&b, " %.2f |", widthHere(t, as, block))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// report is the result for a matrix: how many columns the widest block has in the end, and how many it had before.
type report struct {
	before, after int
	total         int // columns of all blocks
	blocks        int
	tiles, first  int // tiles of blocks, and those that needed no retry
}

// summary gives the matrices that are reordered in the paper's sense, their columns no more than before; and,
// over all of them, the tiles that needed no retry and the mean width relative to before.
func summary(rs []report) string {
	var good, tiles, first int
	var width float64
	for _, r := range rs {
		if r.after <= (r.before+TileCols-1)/TileCols*TileCols {
			good++
		}
		tiles += r.tiles
		first += r.first
		width += float64(r.total) / float64(r.blocks*r.before) / float64(len(rs))
	}
	return fmt.Sprintf("%d/%d | %.0f %% | %.2f", good, len(rs), 100*float64(first)/float64(max(1, tiles)), width)
}

// asPublished reorders by the paper's rule. A column of a tile that cannot be reordered, the least compatible of
// the first strip that fails, goes to the end of the block's list, and a column of zeros takes its place.
func asPublished(a *formats.CSR[float32], blockTile int) report {
	r := report{before: a.Cols}
	strips := blockTile / StripRows
	for b := range blocks(a.Rows, blockTile) {
		list := blockColumns(a, b, strips)
		width := 0
		for len(list) > 0 {
			n := min(TileCols, len(list))
			tile := slices.Clone(list[:n])
			list = list[n:]
			retried := false
			for {
				back := failing(tile, strips)
				if back < 0 {
					break
				}
				list = append(list, tile[back])
				tile = slices.Delete(tile, back, back+1)
				retried = true
			}
			r.tiles++
			if !retried {
				r.first++
			}
			width += TileCols
		}
		r.after = max(r.after, width)
		r.total += width
		r.blocks++
	}
	return r
}

// blockColumns returns the columns of a block in which it has entries: for each, the rows of each strip.
func blockColumns(a *formats.CSR[float32], b, strips int) [][]uint16 {
	rows := map[int32][]uint16{}
	var order []int32
	for s := range strips {
		for w := walk(a, b*strips+s); w.Next(a.ColIdx); {
			if rows[w.Col] == nil {
				rows[w.Col] = make([]uint16, strips)
				order = append(order, w.Col)
			}
			rows[w.Col][s] = uint16(w.Took)
		}
	}
	slices.Sort(order)
	list := make([][]uint16, len(order))
	for i, c := range order {
		list[i] = rows[c]
	}
	return list
}

// failing returns the column that is to leave the tile, or -1 if every strip can be reordered.
func failing(tile [][]uint16, strips int) int {
	for s := range strips {
		var x search
		for _, rows := range tile {
			x.add(candidate{mask: rows[s]}, false)
		}
		if !x.find() {
			return x.leastCompatible()
		}
	}
	return -1
}

// widthHere is the mean width of strips as Encode makes them, relative to the matrix's columns.
func widthHere(t *testing.T, as []*formats.CSR[float32], block int) float64 {
	var width float64
	for _, a := range as {
		m, err := Encode(a, Options{BlockTile: block, AvoidConflicts: true})
		if err != nil {
			t.Fatal(err)
		}
		width += float64(m.Reordering().Tiles*TileCols) / float64(tableRows/StripRows*a.Cols) / float64(len(as))
	}
	return width
}
