// New values for the entries of a prepared matrix: its pattern, and so how it is packed, stay as they are.

package plan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/tensor"
)

// Values are new values in the host's memory, one after another.
type Values struct {
	Type dtype.Type
	Data []byte
}

func (v Values) len() int { return len(v.Data) / v.Type.Size() }

// SetValues makes the elements of a tensor of 1×NNZ or NNZ×1 the values of the matrix's entries, in the order in which
// these were given to New: of the CSR, of the CSC's arrays, of what Sparse returns for other formats. It waits for the
// multiplication in progress. After an error the values are undefined.
func (p *Plan) SetValues(ctx context.Context, v Operand) error {
	t, err := OneTensor(v)
	if err != nil {
		return err
	}
	_, err = p.RepeatSetValues(ctx, 1, t)
	return err
}

// RepeatSetValues is SetValues a number of times back to back: it serves to measure.
func (p *Plan) RepeatSetValues(ctx context.Context, times int, v *tensor.Tensor) (backend.Timing, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.checkValues(ctx, v); err != nil {
		return backend.Timing{}, err
	}
	if err := v.Use(); err != nil {
		return backend.Timing{}, err
	}
	defer v.Release()
	return p.exec.setTensor(ctx, p.launcher, p.given, v, times)
}

// SetHostValues is SetValues for values in the host's memory.
func (p *Plan) SetHostValues(ctx context.Context, v Values) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.mayChange(ctx); err != nil {
		return err
	}
	if n := v.len(); int64(n) != p.NNZ {
		return fmt.Errorf("%d values for a matrix of %d entries", n, p.NNZ)
	}
	return p.exec.setHost(ctx, p.launcher, p.given, v)
}

// checkValues refuses tensors that are no values of this matrix.
func (p *Plan) checkValues(ctx context.Context, v *tensor.Tensor) error {
	if err := p.mayChange(ctx); err != nil {
		return err
	}
	switch {
	case v == nil:
		return errors.New("the tensor of values is missing")
	case v.Device() != p.dev:
		return fmt.Errorf("values must be on the device of A, which is on %v", p.dev.Info())
	case v.Rows != 1 && v.Cols != 1 || int64(v.Rows)*int64(v.Cols) != p.NNZ:
		if p.NNZ == 0 && v.Rows*v.Cols == 0 {
			return nil
		}
		return fmt.Errorf("values of %d×%d for a matrix of %d entries: want 1×%d or %d×1", v.Rows, v.Cols, p.NNZ, p.NNZ, p.NNZ)
	}
	return nil
}

// mayChange refuses new values whatever they are.
func (p *Plan) mayChange(ctx context.Context) error {
	if p.closed.Load() {
		return fmt.Errorf("the plan: %w", backend.ErrClosed)
	}
	if p.Quantised != dtype.Invalid {
		return fmt.Errorf("values of a quantised matrix cannot be replaced: quantise and prepare it again: %w", backend.ErrUnsupported)
	}
	if p.Panels > 0 {
		return fmt.Errorf("new values of a matrix that stays in the host's memory: prepare it again: %w", backend.ErrUnsupported)
	}
	if p.NNZ > math.MaxUint32 {
		return fmt.Errorf("a matrix of %d entries, of which at most %d take new values: %w", p.NNZ, int64(math.MaxUint32), backend.ErrUnsupported)
	}
	return ctx.Err()
}

// given tells in which order the entries of a matrix were given, and keeps the pattern where that takes it.
type given struct {
	rows, cols int
	ptr        []int64 // nil if not kept
	idx        []int32
	turned     bool     // entries were given by columns, those of each by ascending row
	number     []uint32 // then the number that each was given; made when first needed
}

// newGiven keeps what new values take besides the packed matrix. A matrix that is turned shares no memory with anything.
func newGiven(a formats.Encoded, turned, whole bool) *given {
	g := &given{turned: turned}
	g.rows, g.cols = a.Dims()
	if turned || whole {
		s := a.Sparse()
		g.ptr, g.idx = s.Pattern()
		if s == a && !turned { // the caller's
			g.ptr, g.idx = slices.Clone(g.ptr), slices.Clone(g.idx)
		}
	}
	return g
}

// numbers returns the number that each entry was given; nil if that is its own.
func (g *given) numbers() []uint32 {
	if !g.turned || g.number != nil {
		return g.number
	}
	next := make([]uint32, g.cols+1)
	for _, c := range g.idx {
		next[c+1]++
	}
	for c := range g.cols {
		next[c+1] += next[c]
	}
	g.number = make([]uint32, len(g.idx))
	for i, c := range g.idx {
		g.number[i] = next[c]
		next[c]++
	}
	return g.number
}

// sparse returns the matrix with values of a type, in its own order.
func (g *given) sparse(t dtype.Type, v Values) formats.Sparse {
	switch t {
	case dtype.F16:
		return &formats.CSR[half.F16]{Rows: g.rows, Cols: g.cols, RowPtr: g.ptr, ColIdx: g.idx, Val: ordered[half.F16](g, v)}
	case dtype.BF16:
		return &formats.CSR[half.BF16]{Rows: g.rows, Cols: g.cols, RowPtr: g.ptr, ColIdx: g.idx, Val: ordered[half.BF16](g, v)}
	}
	if t == dtype.F64 {
		return &formats.CSR[float64]{Rows: g.rows, Cols: g.cols, RowPtr: g.ptr, ColIdx: g.idx, Val: ordered[float64](g, v)}
	}
	return &formats.CSR[float32]{Rows: g.rows, Cols: g.cols, RowPtr: g.ptr, ColIdx: g.idx, Val: ordered[float32](g, v)}
}

// inOrder returns values in the order of the matrix's entries.
func (g *given) inOrder(v Values) []byte {
	switch v.Type {
	case dtype.F16:
		return backend.Bytes(ordered[half.F16](g, v))
	case dtype.BF16:
		return backend.Bytes(ordered[half.BF16](g, v))
	}
	return backend.Bytes(ordered[float32](g, v))
}

// ordered returns values converted to T, in the order of the matrix's entries.
func ordered[T formats.Value](g *given, v Values) []T {
	x := make([]T, v.len())
	v.convert(backend.Bytes(x), formats.TypeOf[T](), 0)
	number := g.numbers()
	if number == nil {
		return x
	}
	y := make([]T, len(x))
	for i, n := range number {
		y[i] = x[n]
	}
	return y
}

// convert writes the values from number first on to dst, as many as have room, as elements of type t, rounded as all
// matrices are.
func (v Values) convert(dst []byte, t dtype.Type, first int) {
	n := len(dst) / t.Size()
	src := v.Data[first*v.Type.Size():][:n*v.Type.Size()]
	switch v.Type {
	case dtype.F16:
		convertFrom(dst, t, backend.View[half.F16](src))
	case dtype.BF16:
		convertFrom(dst, t, backend.View[half.BF16](src))
	case dtype.F64:
		convertFrom(dst, t, backend.View[float64](src))
	default:
		convertFrom(dst, t, backend.View[float32](src))
	}
}

func convertFrom[S formats.Value](dst []byte, t dtype.Type, src []S) {
	switch t {
	case dtype.F16:
		formats.ConvertSlice(backend.View[half.F16](dst), src)
	case dtype.BF16:
		formats.ConvertSlice(backend.View[half.BF16](dst), src)
	case dtype.F64:
		formats.ConvertSlice(backend.View[float64](dst), src)
	default:
		formats.ConvertSlice(backend.View[float32](dst), src)
	}
}

// hostValues returns the elements of a vector, in the host's memory.
func hostValues(ctx context.Context, o Operand) (Values, error) {
	t := o.Described()
	v := Values{t.Type, make([]byte, t.Rows*t.Cols*t.Type.Size())}
	return v, o.Read(ctx, tensor.Host{Data: v.Data, LD: t.Rows * t.Cols, ColMajor: t.Rows != 1})
}
