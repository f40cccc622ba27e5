// Values in the host's memory.

package values

import (
	"context"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/tensor"
)

// Host is values in the host's memory, one after another.
type Host struct {
	Type dtype.Type
	Data []byte
}

func (v Host) Len() int { return len(v.Data) / v.Type.Size() }

// convert writes the values from number first on to dst, as many as have room, as elements of type t, rounded as all
// matrices are.
func (v Host) convert(dst []byte, t dtype.Type, first int) {
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

// Read returns the elements of a vector, in the host's memory.
func Read(ctx context.Context, t *tensor.Tensor) (Host, error) {
	v := Host{t.Type, make([]byte, t.Rows*t.Cols*t.Type.Size())}
	return v, t.Read(ctx, tensor.Host{Data: v.Data, LD: t.Rows * t.Cols, ColMajor: t.Rows != 1})
}
