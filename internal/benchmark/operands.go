// The operands of a product in the types that those who compute it take, and as the precision rounds them.

package benchmark

import (
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// pair is a matrix and B, in one type.
type pair[T formats.Value] struct {
	a *formats.CSR[T]
	b *formats.Dense[T]
}

// operands returns the matrix and B with elements of type T. Each type is made once for all who compute the product.
func operands[T formats.Value](r *round) (*formats.CSR[T], *formats.Dense[T]) {
	if is, same := any(pair[float32]{r.a, r.b}).(pair[T]); same {
		return is.a, is.b
	}
	return once(r, formats.TypeOf[T](), func() pair[T] {
		return pair[T]{formats.Convert[T](r.a), formats.ConvertDense[T](r.b)}
	})
}

// rounded returns the matrix and B as the precision rounds them, in numbers of type N.
func rounded[N oracle.Number](r *round) (*formats.CSR[N], *formats.Dense[N]) {
	switch r.prec.Storage() {
	case dtype.F16:
		return roundedTo[half.F16, N](r)
	case dtype.BF16:
		return roundedTo[half.BF16, N](r)
	}
	return operands[N](r)
}

// roundedTo returns operands of type T in numbers of type N.
func roundedTo[T formats.Value, N oracle.Number](r *round) (*formats.CSR[N], *formats.Dense[N]) {
	a, b := operands[T](r)
	type rounding struct{ to, in dtype.Type }
	return once(r, rounding{formats.TypeOf[T](), formats.TypeOf[N]()}, func() pair[N] {
		return pair[N]{formats.Convert[N](a), formats.ConvertDense[N](b)}
	})
}

// once returns what was made before for a key, else makes it.
func once[T formats.Value](r *round, key any, make func() pair[T]) (*formats.CSR[T], *formats.Dense[T]) {
	r.making.Lock()
	defer r.making.Unlock()
	p, made := r.made[key].(pair[T])
	if !made {
		p = make()
		r.made[key] = p
	}
	return p.a, p.b
}
