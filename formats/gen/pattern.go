// Which places of a matrix have entries: how many units each group of rows has, and which.

package gen

import (
	"context"
	"math"
	"math/bits"
	"slices"
)

// pattern is a spec seen as groups and units.
type pattern struct {
	*Spec
	groups, height int    // groups of height rows each
	units, width   int    // units of width columns each
	density32      uint64 // density, times 2³²
	octave32       uint64 // powerlaw: probability of an octave relative to the one before, times 2³²
	ratio          uint64 // powerlaw: entries per raw length, times 2³²
	first, last    int    // the rows that are made

	counts, picks, empties, jitters stream
}

// newPattern returns the pattern of a spec, without powerlaw's ratio, which takes a look at all rows.
func newPattern(s *Spec) *pattern {
	p := &pattern{
		Spec: s, height: 1, width: 1, density32: uint64(s.density * (1 << 32)),
		counts:  newStream(s.Seed, streamCount),
		picks:   newStream(s.Seed, streamPick),
		empties: newStream(s.Seed, streamEmpty),
		jitters: newStream(s.Seed, streamJitter),
	}
	switch s.Kind {
	case "vector", "nm":
		p.height = s.v
	case "block":
		p.height, p.width = s.block, s.block
	}
	p.groups = (s.Rows + p.height - 1) / p.height
	p.units = (s.Cols + p.width - 1) / p.width
	if s.Kind == "powerlaw" {
		p.octave32 = octaveRatio(s.alpha)
	}
	return p
}

// isEmpty reports whether group g is one of those left empty.
func (p *pattern) isEmpty(g int) bool {
	return p.empty > 0 && p.empties.at(uint64(g))>>32 < uint64(p.empty*(1<<32))
}

// window returns the range of units that group g chooses from.
func (p *pattern) window(g int) (lo, hi int) {
	band := p.band
	switch p.Kind {
	case "diagonal":
		band = 0
	case "banded":
	default:
		return 0, p.units
	}
	return min(p.units, max(0, g-band)), min(p.units, g+band+1)
}

// count returns the number of units of group g.
func (p *pattern) count(g int) int {
	lo, hi := p.window(g)
	all := hi - lo
	switch {
	case p.Kind == "onedense" && g == p.row:
		return all
	case p.isEmpty(g):
		return 0
	case p.Kind == "nm":
		return all/p.m*p.n + min(p.n, all%p.m)
	case p.Kind == "diagonal":
		return all
	case p.Kind == "rmat":
		return p.edges(g)
	case p.Kind == "stencil":
		return p.neighbours(g, func(int) {})
	case p.Kind == "powerlaw":
		return p.length(g)
	case p.rowNNZ >= 0:
		return min(all, p.rowNNZ/p.width)
	}
	return binomial(p.counts.sub(uint64(g)), all, p.rowDensity(g))
}

// rowDensity returns the density of group g times 2³².
func (p *pattern) rowDensity(g int) uint64 {
	if p.jitter == 0 {
		return p.density32
	}
	jitter32 := uint64(p.jitter * (1 << 32))
	factor32 := 1<<32 - jitter32 + scale(p.jitters.at(uint64(g)), 2*jitter32)
	hi, lo := bits.Mul64(p.density32, factor32)
	return hi<<32 | lo>>32
}

// pick returns the units of group g, ascending, in memory that k reuses.
func (p *pattern) pick(g int, k *picker) []int32 {
	k.out = k.out[:0]
	n := p.count(g)
	if n == 0 {
		return nil
	}
	s := p.picks.sub(uint64(g))
	switch p.Kind {
	case "rmat":
		k.out = p.targets(g, n, s, k.out)
		return k.out
	case "stencil":
		p.neighbours(g, func(j int) { k.out = append(k.out, int32(j)) })
		return k.out
	}
	lo, hi := p.window(g)
	if p.Kind != "nm" {
		k.choose(s, lo, hi-lo, n)
		return k.out
	}
	for ; lo < hi; lo += p.m {
		width := min(p.m, hi-lo)
		k.choose(s.sub(uint64(lo)), lo, width, min(p.n, width))
	}
	return k.out
}

// binomial returns how many of n places are taken when each is with probability density32/2³²: the
// mean is exact, the spread that of a binomial distribution or close to it.
func binomial(s stream, n int, density32 uint64) int {
	if density32 > 1<<31 {
		return n - binomial(s, n, 1<<32-density32)
	}
	mean := uint64(n) * density32 // times 2³²
	if n <= trials || mean < trials/4<<32 {
		return few(s, min(n, trials), mean)
	}
	variance, _ := bits.Mul64(mean<<1, (1<<32-density32)<<31)
	return min(n, max(0, normal(s, mean, variance)))
}

// normal returns a number of a normal distribution, rounded up or down at random. mean is times 2³²; so is the
// variance, and its root is the standard deviation times 2¹⁶.
func normal(s stream, mean, variance uint64) int {
	deviation := centred(s.at(0)) * int64(math.Sqrt(float64(variance))) / centredSD << 16
	x := int64(mean) + deviation + int64(s.at(1)>>32)
	return int(x >> 32)
}

// trials is the number of draws in few.
const trials = 64

// few counts the successes of n ≤ trials draws, mean32/2³² of them on average.
func few(s stream, n int, mean32 uint64) int {
	if n == 0 {
		return 0
	}
	threshold, count := mean32/uint64(n), 0
	for i := range n {
		if s.at(uint64(i))>>32 < threshold {
			count++
		}
	}
	return count
}

// rawLength draws a length of at least 1 with density about length^-alpha: the octave it lies in, each
// 2^(1-alpha) times as likely as the one before, and uniformly a place in that.
func (p *pattern) rawLength(g int) uint64 {
	s := p.counts.sub(uint64(g))
	octave := uint64(0)
	for octave < 31 && s.at(octave)>>32 < p.octave32 {
		octave++
	}
	return min(uint64(p.units), 1<<octave+scale(s.at(octave+1), 1<<octave))
}

// octaveRatio returns 2^(1-alpha) times 2³², computed with operations that IEEE 754 rounds exactly.
func octaveRatio(alpha float64) uint64 {
	x := alpha - 1
	whole := math.Floor(x)
	power, root, frac := math.Ldexp(1, -int(whole)), 0.5, x-whole
	for range 32 {
		root = math.Sqrt(root)
		if frac *= 2; frac >= 1 {
			power, frac = power*root, frac-1
		}
	}
	return uint64(power * (1 << 32))
}

// scaleLengths returns the factor from raw to wanted lengths, times 2³².
func (p *pattern) scaleLengths(ctx context.Context) uint64 {
	sum, groups := uint64(0), uint64(0)
	for g := range p.groups {
		if g%stride == 0 && ctx.Err() != nil {
			return 0
		}
		if !p.isEmpty(g) {
			sum, groups = sum+p.rawLength(g), groups+1
		}
	}
	if sum == 0 {
		return 0
	}
	mean := uint64(p.units) * p.density32
	if p.rowNNZ >= 0 {
		mean = uint64(min(p.rowNNZ, p.units)) << 32
	}
	hi, lo := bits.Mul64(mean, groups)
	ratio, _ := bits.Div64(hi, lo, sum) // sum ≥ groups, so this fits
	return ratio
}

// length returns the entries of row g, rounded up or down at random.
func (p *pattern) length(g int) int {
	raw := p.rawLength(g)
	hi, lo := bits.Mul64(raw, p.ratio)
	lo, carry := bits.Add64(lo, p.counts.sub(uint64(g)).at(63)>>32, 0)
	hi += carry
	if hi >= 1<<31 {
		return p.units
	}
	return int(min(uint64(p.units), hi<<32|lo>>32))
}

// picker draws without replacement. It keeps its memory from one draw to the next.
type picker struct {
	taken []uint64 // a bit for each place; all zero between draws
	out   []int32
}

// choose appends to out, ascending, n of the width numbers from base on (Floyd's algorithm).
func (k *picker) choose(s stream, base, width, n int) {
	switch {
	case n == width:
		for i := range n {
			k.out = append(k.out, int32(base+i))
		}
	case n <= 16:
		k.chooseFew(s, base, width, n)
	default:
		k.chooseMany(s, base, width, n)
	}
}

func (k *picker) chooseFew(s stream, base, width, n int) {
	start := len(k.out)
	for i := range n {
		limit := width - n + i
		x := int32(base + int(scale(s.at(uint64(i)), uint64(limit)+1)))
		place, found := search(k.out[start:], x)
		if found { // limit itself is larger than all drawn so far
			x, place = int32(base+limit), i
		}
		k.out = append(k.out, 0)
		copy(k.out[start+place+1:], k.out[start+place:])
		k.out[start+place] = x
	}
}

// search returns the place of x in the short ascending list s, or where to insert it.
func search(s []int32, x int32) (place int, found bool) {
	for place < len(s) && s[place] < x {
		place++
	}
	return place, place < len(s) && s[place] == x
}

func (k *picker) chooseMany(s stream, base, width, n int) {
	words, start := (width+63)/64, len(k.out)
	if len(k.taken) < words {
		k.taken = make([]uint64, words)
	}
	for i := range n {
		limit := width - n + i
		x := int(scale(s.at(uint64(i)), uint64(limit)+1))
		if k.taken[x>>6]>>(x&63)&1 == 1 {
			x = limit
		}
		k.taken[x>>6] |= 1 << (x & 63)
		if n < words/8 {
			k.out = append(k.out, int32(x))
		}
	}
	if n < words/8 {
		k.emitSorted(base, start)
	} else {
		k.emitAll(base, words)
	}
}

// emitSorted finishes the draw of the numbers in out from start on by sorting them.
func (k *picker) emitSorted(base, start int) {
	drawn := k.out[start:]
	slices.Sort(drawn)
	for i, x := range drawn {
		k.taken[x>>6] = 0
		drawn[i] = x + int32(base)
	}
}

// emitAll finishes the draw by reading the bits.
func (k *picker) emitAll(base, words int) {
	for w, b := range k.taken[:words] {
		for ; b != 0; b &= b - 1 {
			k.out = append(k.out, int32(base+w<<6+bits.TrailingZeros64(b)))
		}
		k.taken[w] = 0
	}
}
