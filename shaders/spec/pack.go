// Making Format.Encode and Format.Adopt of generic functions.

package spec

import (
	"errors"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// Encoder makes a Format.Encode of three instances of one generic function: see Adopter.
func Encoder(f16 func(*formats.CSR[half.F16], *Variant) (*Packed, error),
	bf16 func(*formats.CSR[half.BF16], *Variant) (*Packed, error), f32 func(*formats.CSR[float32], *Variant) (*Packed,
		error)) func(formats.Sparse, *Variant) (*Packed, error) {
	pack := Adopter(f16, bf16, f32)
	return func(a formats.Sparse, v *Variant) (*Packed, error) { return pack(a, v) }
}

// Adopter makes a Format.Adopt of three instances of one generic function, which pack a matrix of the format with
// elements of type F16, BF16 and float32. A matrix of another type than the variant's, or in another format, is an
// error. An error that wraps formats.ErrTooLarge also wraps ErrUnsupported.
func Adopter[A, B, C formats.Encoded](f16 func(A, *Variant) (*Packed, error), bf16 func(B, *Variant) (*Packed, error),
	f32 func(C, *Variant) (*Packed, error)) func(formats.Encoded, *Variant) (*Packed, error) {
	return adopter(formats.ByType(f16, bf16, f32))
}

// Encoder64 is Encoder for formats that have variants of F64 too.
func Encoder64(f16 func(*formats.CSR[half.F16], *Variant) (*Packed, error),
	bf16 func(*formats.CSR[half.BF16], *Variant) (*Packed, error), f32 func(*formats.CSR[float32], *Variant) (*Packed,
		error), f64 func(*formats.CSR[float64], *Variant) (*Packed, error)) func(formats.Sparse, *Variant) (*Packed, error) {
	pack := Adopter64(f16, bf16, f32, f64)
	return func(a formats.Sparse, v *Variant) (*Packed, error) { return pack(a, v) }
}

// Adopter64 is Adopter for formats that have variants of F64 too.
func Adopter64[A, B, C, D formats.Encoded](f16 func(A, *Variant) (*Packed, error),
	bf16 func(B, *Variant) (*Packed, error), f32 func(C, *Variant) (*Packed, error),
	f64 func(D, *Variant) (*Packed, error)) func(formats.Encoded, *Variant) (*Packed, error) {
	return adopter(formats.ByType64(f16, bf16, f32, f64))
}

func adopter(pack func(formats.Encoded, *Variant) (*Packed, error)) func(formats.Encoded, *Variant) (*Packed, error) {
	return func(m formats.Encoded, v *Variant) (*Packed, error) {
		if err := v.Takes(m); err != nil {
			return nil, err
		}
		if v.Quant != dtype.Invalid {
			return nil, fmt.Errorf("variant %s takes quantised matrices", v.Name)
		}
		p, err := pack(m, v)
		if errors.Is(err, formats.ErrTooLarge) && !errors.Is(err, backend.ErrUnsupported) {
			err = fmt.Errorf("%w: %w", err, backend.ErrUnsupported)
		}
		return p, err
	}
}

// Quantising makes a Format.Encode of two functions: one for variants that compute with A's own values, and one for
// those with Quant. For the latter it quantises, which is exact if 8 bits and a power of two hold the values
// (formats.Quantise).
func Quantising(encode func(formats.Sparse, *Variant) (*Packed, error),
	quantised func(*formats.Quantised, *Variant) (*Packed, error)) func(formats.Sparse, *Variant) (*Packed, error) {
	return func(a formats.Sparse, v *Variant) (*Packed, error) {
		if v.Quant == dtype.Invalid {
			return encode(a, v)
		}
		if err := v.Takes(a); err != nil {
			return nil, err
		}
		q, _, err := formats.Quantise(a, v.Quant)
		if err != nil {
			return nil, err
		}
		return quantised(q, v)
	}
}

// Takes refuses a matrix whose elements are of another type than the variant reads.
func (v *Variant) Takes(m formats.Encoded) error {
	if t := m.Type(); t != v.In.Storage() {
		return fmt.Errorf("variant %s packs %v, not %v", v.Name, v.In.Storage(), t)
	}
	return nil
}
