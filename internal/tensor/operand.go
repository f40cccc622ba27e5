// Operands of products, on one device or several.

package tensor

import (
	"context"
	"errors"
)

// Operand is a dense matrix: a *Tensor on one device, or one of package many on several.
type Operand interface {
	Described() Shape
	Write(ctx context.Context, h Host) error
	Read(ctx context.Context, h Host) error
	Close() error
}

var errSeveral = errors.New("a tensor lies on several devices: it is for plans on these devices")

// One returns the tensor of a device by itself that an operand is, nil for none.
func One(o Operand) (*Tensor, error) {
	if o == nil {
		return nil, nil
	}
	t, is := o.(*Tensor)
	if !is {
		return nil, errSeveral
	}
	return t, nil
}
