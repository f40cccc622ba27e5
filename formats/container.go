// Encoded matrices as files hold them: what describes one, and its arrays by their names.

package formats

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/half"
)

// Container is an encoded matrix as a file holds it. After reading it is unchecked: Format.Open checks it.
type Container struct {
	Format     string
	Version    int // of the format's arrays
	Type       dtype.Type
	Rows, Cols int
	NNZ        int64
	Options    map[string]int // the format's parameters
	Arrays     []Array
}

// Array is a named array of a Container: Data is a []E of some Elem.
type Array struct {
	Name string
	Data any
}

// Elem is an element type of arrays.
type Elem interface {
	uint8 | uint32 | int32 | int64 | half.F16 | half.BF16 | float32 | float64
}

// Fields are a matrix's numbers and arrays, under their names in files. The pointers point into the matrix, so that it
// can be read and set through them.
type Fields struct {
	Version    int // of the arrays; it changes with what they mean
	Oldest     int // the earliest version that is still read; 0: none but Version
	Rows, Cols *int
	Options    map[string]*int // the parameters that the arrays depend on
	Arrays     []Field
	// Derive, if set, computes the fields that files do not hold, once the others have been set. The arrays have not been
	// validated.
	Derive func()
}

// Field is an array of a matrix.
type Field struct {
	Name  string
	get   func() any
	set   func(any) error
	since int // the version that it came with; files of earlier ones do not have it
}

// Since returns the field with the version that introduced its array. In files of earlier versions the array is
// missing, and becomes empty.
func (f Field) Since(version int) Field {
	f.since = version
	return f
}

// NewField names an array of a matrix.
func NewField[E Elem](name string, array *[]E) Field {
	return Field{
		Name: name,
		get:  func() any { return *array },
		set: func(data any) error {
			s, ok := data.([]E)
			if !ok {
				return fmt.Errorf("array %q is a %T, want a %T", name, data, s)
			}
			*array = s
			return nil
		},
	}
}

// NewContainer returns a matrix as a container, which shares its arrays.
func NewContainer(e Encoded) *Container {
	f := e.Fields()
	c := &Container{
		Format: e.Format(), Version: f.Version, Type: e.Type(), Rows: *f.Rows, Cols: *f.Cols, NNZ: e.NNZ(),
		Options: OptionsOf(e),
	}
	for _, a := range f.Arrays {
		c.Arrays = append(c.Arrays, Array{a.Name, a.get()})
	}
	return c
}

// Clone returns a copy of a matrix in its own format that shares no memory with it. The matrix must be a pointer, as
// all matrices of this package and those below it are.
func Clone(e Encoded) Encoded {
	if d, ok := e.(interface{ clone() Encoded }); ok {
		return d.clone()
	}
	p := reflect.New(reflect.TypeOf(e).Elem())
	p.Elem().Set(reflect.ValueOf(e).Elem())
	c := p.Interface().(Encoded)
	fields := c.Fields()
	for _, f := range fields.Arrays {
		f.set(cloned(f.get()))
	}
	if fields.Derive != nil {
		fields.Derive()
	}
	return c
}

// cloned returns a copy of a slice of some Elem.
func cloned(data any) any {
	switch s := data.(type) {
	case []uint8:
		return slices.Clone(s)
	case []uint32:
		return slices.Clone(s)
	case []int32:
		return slices.Clone(s)
	case []int64:
		return slices.Clone(s)
	case []half.F16:
		return slices.Clone(s)
	case []half.BF16:
		return slices.Clone(s)
	case []float64:
		return slices.Clone(s)
	}
	return slices.Clone(data.([]float32))
}

// OptionsOf returns the options with which a matrix was encoded, as Format.Encode takes them.
func OptionsOf(e Encoded) map[string]int {
	options := map[string]int{}
	for name, n := range e.Fields().Options {
		options[name] = *n
	}
	return options
}

// Open returns the matrix that c holds, validated, sharing its arrays. It must be of format f.
func (f Format) Open(c *Container) (Encoded, error) {
	e := f.New(c.Type)
	fields := e.Fields()
	oldest := cmp.Or(fields.Oldest, fields.Version)
	if c.Format != f.Name || c.Version < oldest || c.Version > fields.Version {
		return nil, fmt.Errorf("format %s, version %d: this version of the program reads %s, version %d", c.Format, c.Version, f.Name, fields.Version)
	}
	*fields.Rows, *fields.Cols = c.Rows, c.Cols
	for name, n := range fields.Options {
		*n = c.Options[name]
	}
	for _, a := range fields.Arrays {
		i := slices.IndexFunc(c.Arrays, func(x Array) bool { return x.Name == a.Name })
		if i < 0 && c.Version < a.since {
			continue
		}
		if i < 0 {
			return nil, fmt.Errorf("no array %q, which format %s has", a.Name, f.Name)
		}
		if err := a.set(c.Arrays[i].Data); err != nil {
			return nil, err
		}
	}
	if fields.Derive != nil {
		fields.Derive()
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	if n := e.NNZ(); n != c.NNZ {
		return nil, fmt.Errorf("%d entries, and the header says %d", n, c.NNZ)
	}
	return e, nil
}
