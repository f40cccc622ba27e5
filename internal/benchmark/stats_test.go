package benchmark

import (
	"math"
	"math/rand/v2"
	"testing"
)

func count(from, to float64) []float64 {
	var xs []float64
	for x := from; x <= to; x++ {
		xs = append(xs, x)
	}
	return xs
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		xs   []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 5}, 5}} {
		if got := Median(c.xs); got != c.want {
			t.Errorf("Median(%v) = %v, want %v", c.xs, got, c.want)
		}
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("Median of nothing is %v", got)
	}
}

// The ranks are those of tables of the sign test's interval for the median.
func TestInterval(t *testing.T) {
	for _, c := range []struct{ n, low, high float64 }{
		{1, 0, math.Inf(1)}, {5, 0, math.Inf(1)}, {6, 1, 6}, {8, 1, 8}, {9, 2, 8}, {10, 2, 9}, {15, 4, 12}, {20, 6, 15},
		{50, 18, 33}, {100, 40, 61},
	} {
		if low, high := Interval(count(1, c.n)); low != c.low || high != c.high {
			t.Errorf("of 1 to %v: from %v to %v, want %v to %v", c.n, low, high, c.low, c.high)
		}
	}
	low, high := Interval(count(1, 2000))
	if low < 950 || low > 960 || low+high != 2001 {
		t.Errorf("of 1 to 2000: from %v to %v", low, high)
	}
}

func TestIntervalCovers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const runs = 4000
	for _, n := range []int{7, 15, 40} {
		in := 0
		for range runs {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = rnd.ExpFloat64()
			}
			if low, high := Interval(xs); low <= math.Ln2 && math.Ln2 <= high {
				in++
			}
		}
		if share := float64(in) / runs; share < 0.94 {
			t.Errorf("%d times: the median is in %.3f of the intervals, want 0.95", n, share)
		}
	}
}

// The probabilities are worked out from U, which is 0 and 2.5, and its variance, which is 175 and 20/12·(10-36/72).
func TestDiffer(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want float64
	}{
		{count(1, 10), count(11, 20), math.Erfc(49.5 / math.Sqrt(2*175))},
		{count(1, 10), count(1, 10), 1},
		{[]float64{1, 2, 2, 3}, []float64{2, 3, 4, 5, 5}, math.Erfc(7 / math.Sqrt(2*20./12*9.5))},
		{[]float64{7, 7}, []float64{7, 7, 7}, 1},
		{nil, count(1, 5), 1},
	} {
		if got := Differ(c.x, c.y); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Differ(%v, %v) = %v, want %v", c.x, c.y, got, c.want)
		}
		if got, back := Differ(c.x, c.y), Differ(c.y, c.x); math.Abs(got-back) > 1e-12 {
			t.Errorf("Differ(%v, %v) = %v, the other way %v", c.x, c.y, got, back)
		}
	}
}

func TestGeometricMean(t *testing.T) {
	if got := GeometricMean([]float64{1, 4, 16}); math.Abs(got-4) > 1e-12 {
		t.Errorf("got %v, want 4", got)
	}
}
