// Estimates are close to what is made, and what is refused is refused at once.

package gen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spmmrun/spmm/formats"
)

func TestExpected(t *testing.T) {
	for _, keys := range []string{
		"uniform", "uniform,density=0.3,empty=0.4", "uniform,jitter=1,density=0.2", "uniform,nnz-per-row=7", "vector,v=4",
		"block,block=8,empty=0.2",
		"block,nnz-per-row=32", "nm,n=3,m=7", "banded,band=40", "banded,density=0.5,band=3", "powerlaw",
		"powerlaw,alpha=1.2,density=0.5",
		"powerlaw,alpha=3,nnz-per-row=20", "powerlaw,alpha=7,density=0.9,empty=0.1", "onedense", "onedense,nnz-per-row=0",
		"diagonal,empty=0.5",
	} {
		for _, size := range []string{"rows=4000,cols=1000", "rows=1000,cols=4000"} {
			spec := fmt.Sprintf("gen:%s,%s", keys, size)
			s, err := Parse(spec, 1)
			if err != nil {
				t.Fatal(err)
			}
			a, err := s.Generate(context.Background(), formats.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			least, most := newPattern(s).expected()
			if n := float64(a.NNZ()); least > n || most < n || least < n/4-1<<17 || most > 4*n+1<<17 {
				t.Errorf("%s: %.0f to %.0f entries expected, %.0f made", spec, least, most, n)
			}
		}
	}
}

// Rows by the thousand million are not counted: that would take minutes, and the context's end shows it.
func TestRefusedAtOnce(t *testing.T) {
	for _, spec := range []string{
		"uniform,rows=2147483647", "powerlaw,rows=2147483647", "vector,rows=2147483647,cols=10",
		"diagonal,rows=2147483647,cols=100",
		"banded,rows=2147483647", "onedense,rows=2147483647,density=0", "block,rows=2147483647", "nm,rows=2147483647,cols=3",
		"uniform,rows=2147483647,cols=0",
	} {
		s, err := Parse("gen:"+spec, 1)
		if err != nil {
			t.Fatal(err)
		}
		ctx := &looked{Context: context.Background()}
		if _, err := s.Generate(ctx, formats.Limits{Bytes: 1 << 33}); err == nil ||
			!strings.Contains(err.Error(), "estimated: ") || ctx.times > 0 {
			t.Errorf("%s: %v, after %d looks at the context", spec, err, ctx.times)
		}
	}
	// What is possible is not refused.
	for _, lim := range []formats.Limits{{NNZ: 10}, {Bytes: 8*11 + 8*10}} {
		s, err := Parse("gen:uniform,rows=10,nnz-per-row=1", 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Generate(context.Background(), lim); err != nil {
			t.Error(err)
		}
	}
	least, most := newPattern(&Spec{Kind: "powerlaw", density: 0, rowNNZ: -1, alpha: 2}).expected()
	if least != 0 || math.IsNaN(most) {
		t.Errorf("%v to %v entries expected of an empty matrix", least, most)
	}
}

// looked counts how often a context is looked at.
type looked struct {
	context.Context
	times int
}

func (l *looked) Err() error {
	l.times++
	return nil
}

// once is a context that ends when it has been looked at once.
type once struct {
	context.Context
	looks atomic.Int32
}

func (o *once) Err() error {
	if o.looks.Add(1) > 1 {
		return context.Canceled
	}
	return nil
}

// A generation that ends while rows are counted says so, and nothing of how few they are.
func TestCancelledCounting(t *testing.T) {
	s, err := Parse("gen:uniform,rows=100000000,cols=4,density=0.4", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Generate(&once{Context: context.Background()}, formats.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
}
