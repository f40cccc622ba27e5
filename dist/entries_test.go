// Matrices that ranks read in parts, and matrices that are collected on one.

package dist_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/comm/local"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
)

// Rank 0 gets all rows in order; what it makes of them is an error on all.
func TestCollect(t *testing.T) {
	want := gen.Dense(100_003, 50, 1, gen.Values{}) // more than one chunk for some ranks
	for _, bounds := range []dist.Bounds{{0, want.Rows}, {0, 0, 90_000, 90_000, want.Rows}, dist.Even(want.Rows, 3)} {
		ranks := len(bounds) - 1
		got := &formats.Dense[float32]{Cols: want.Cols, LD: want.Cols}
		err := local.Run(ranks, func(c comm.Comm) error {
			lo, hi := bounds.Range(c.Rank())
			return dist.Collect(c, bounds, rowsOf(want, lo, hi), func(rows *formats.Dense[float32]) error {
				got.Rows += rows.Rows
				got.Data = append(got.Data, rows.Data[:rows.Rows*rows.Cols]...)
				return nil
			})
		})
		if err != nil || !got.Equal(want) {
			t.Errorf("%v: %d rows, %v", bounds, got.Rows, err)
		}
		err = local.Run(ranks, func(c comm.Comm) error {
			var all *formats.Dense[float32]
			if c.Rank() == 0 {
				all = want.Layout(false, 53)
			}
			mine, err := dist.Scatter(c, bounds, all, want.Cols)
			if lo, hi := bounds.Range(c.Rank()); err == nil && !mine.Equal(rowsOf(want, lo, hi)) {
				return errors.New("other rows than were scattered")
			}
			return err
		})
		if err != nil {
			t.Errorf("Scatter, %v: %v", bounds, err)
		}
	}
	full := errors.New("no space left")
	errs := make([]error, 2)
	_ = local.Run(2, func(c comm.Comm) error {
		errs[c.Rank()] = dist.Collect(c, dist.Even(10, 2), gen.Dense(5, 1, 1, gen.Values{}),
			func(*formats.Dense[float32]) error { return full })
		return nil
	})
	if !errors.Is(errs[0], full) || errs[1] == nil || !strings.Contains(errs[1].Error(), "no space left") {
		t.Errorf("%v", errs)
	}
}

// Entries that ranks have in any order make the matrix that one process makes of all, duplicates added up in the same
// order.
func TestFromEntries(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	all := &formats.COO[float32]{Rows: 37, Cols: 23}
	for range 2000 {
		all.Row, all.Col, all.Val = append(all.Row, r.Int32N(37)), append(all.Col, r.Int32N(23)), append(all.Val,
			float32(math.Ldexp(r.Float64()-0.5, r.IntN(60)-30)))
	}
	want := must(all.ToCSR(formats.SumDuplicates))
	for _, ranks := range []int{1, 2, 5, 50} {
		cut := dist.Even(len(all.Val), ranks)
		var merged atomic.Int64
		err := local.Run(ranks, func(c comm.Comm) error {
			lo, hi := cut.Range(c.Rank())
			s, n, err := dist.FromEntries(c, &formats.COO[float32]{Rows: 37, Cols: 23, Row: all.Row[lo:hi], Col: all.Col[lo:hi],
				Val: all.Val[lo:hi]})
			if err != nil {
				return err
			}
			merged.Add(n)
			if !s.A.Equal(want.Range(s.First, s.First+s.A.Rows)) {
				return errors.New("other rows than of the whole matrix")
			}
			return nil
		})
		if err != nil || merged.Load() != 2000-want.NNZ() {
			t.Errorf("%d ranks: %v, %d entries merged", ranks, err, merged.Load())
		}
	}
	err := local.Run(2, func(c comm.Comm) error {
		_, _, err := dist.FromEntries(c, &formats.COO[float32]{Rows: 5 + c.Rank(), Cols: 5})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "several sizes") {
		t.Errorf("%v", err)
	}
}
