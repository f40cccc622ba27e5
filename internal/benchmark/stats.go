// Statistics of times: the median, how well it is known, and whether two sets of times differ.

package benchmark

import (
	"cmp"
	"math"
	"slices"
)

// Median returns the middle of the times, the mean of the middle two if their number is even, and NaN if there are
// none.
func Median(times []float64) float64 {
	n := len(times)
	if n == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(times))
	return (s[(n-1)/2] + s[n/2]) / 2
}

// Interval returns the confidence interval of the median at 95 % or more, which order statistics give whatever the
// times' distribution is (Conover, Practical Nonparametric Statistics, §3.2). Fewer than 6 times have none: it is
// from 0 to infinity.
func Interval(times []float64) (low, high float64) {
	s := slices.Sorted(slices.Values(times))
	n := len(s)
	k, tail, term := -1, 0.0, math.Pow(0.5, float64(n)) // P(X ≤ i) for X ~ Binomial(n, 1/2)
	if n > 1000 {                                       // where the first term is next to 0: by the normal distribution
		k = int(float64(n)/2 - 0.98*math.Sqrt(float64(n)) - 1)
		return s[k], s[n-1-k]
	}
	for i := 0; i < n/2; i++ {
		tail += term
		if tail > 0.025 {
			break
		}
		k = i
		term *= float64(n-i) / float64(i+1)
	}
	if k < 0 {
		return 0, math.Inf(1)
	}
	return s[k], s[n-1-k]
}

// Spread is half the length of the interval over the median: ±Spread.
func Spread(times []float64) float64 {
	low, high := Interval(times)
	return (high - low) / 2 / Median(times)
}

// Differ returns the probability that two sets of times of the same distribution lie at least as far apart as these:
// the two-sided rank test of Mann and Whitney, by the normal distribution with corrections for ties and continuity.
// It is 1 where one is empty.
func Differ(x, y []float64) float64 {
	n, m := float64(len(x)), float64(len(y))
	if n == 0 || m == 0 {
		return 1
	}
	type timed struct {
		t     float64
		first bool
	}
	var all []timed
	for _, t := range x {
		all = append(all, timed{t, true})
	}
	for _, t := range y {
		all = append(all, timed{t, false})
	}
	slices.SortFunc(all, func(a, b timed) int { return cmp.Compare(a.t, b.t) })
	ranks, ties := 0.0, 0.0
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].t == all[i].t {
			j++
		}
		same := float64(j - i)
		ties += same*same*same - same
		for ; i < j; i++ {
			if all[i].first {
				ranks += float64(j) - (same-1)/2
			}
		}
	}
	u := ranks - n*(n+1)/2
	total := n + m
	variance := n * m / 12 * (total + 1 - ties/(total*max(1, total-1)))
	if variance <= 0 {
		return 1
	}
	z := max(0, math.Abs(u-n*m/2)-0.5) / math.Sqrt(variance)
	return math.Erfc(z / math.Sqrt2)
}

// GeometricMean returns that of positive numbers, NaN if there are none.
func GeometricMean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(xs)))
}
