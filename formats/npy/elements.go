// The elements of arrays: bytes to numbers and back.

package npy

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/grow"
)

// blockBytes is how much is read at a time; a multiple of every element size.
const blockBytes = 64 << 10

// decoder appends to dst the elements that raw holds. An error names the position within raw.
type decoder[E any] func(dst []E, h header, raw []byte) ([]E, error)

// readElements reads all elements of an array.
func readElements[E any](r io.Reader, h header, decode decoder[E]) ([]E, error) {
	n, err := h.count()
	if err != nil {
		return nil, err
	}
	if err := h.check(); err != nil {
		return nil, err
	}
	var out []E
	raw := make([]byte, blockBytes)
	for int64(len(out)) < n {
		block := raw[:min(int64(len(raw)/h.size), n-int64(len(out)))*int64(h.size)]
		if _, err := io.ReadFull(r, block); err != nil {
			return nil, cutOff(err, fmt.Sprintf("the array of %d elements", n))
		}
		if h.big {
			reverse(block, h.size)
		}
		out = grow.By(out, len(block)/h.size, n)
		if out, err = decode(out, h, block); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// reverse turns big-endian elements into little-endian ones.
func reverse(b []byte, size int) {
	for ; len(b) >= size; b = b[size:] {
		for i, j := 0, size-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
}

// check refuses what is neither a number nor a bool.
func (h header) check() error {
	power := h.size == 1 || h.size == 2 || h.size == 4 || h.size == 8
	switch h.kind {
	case 'f':
		if power && h.size > 1 {
			return nil
		}
	case 'i', 'u':
		if power {
			return nil
		}
	case 'b':
		if h.size == 1 {
			return nil
		}
	}
	return h.unsupported()
}

// floats returns the decoder of any number to V, which says in Loss what becomes of f8 that is rounded.
func floats[V Float](o Options) decoder[V] {
	if o.Loss != nil {
		*o.Loss = formats.Loss{}
	}
	var d any = decoder[float64](appendWide)
	if formats.TypeOf[V]() == dtype.F32 {
		d = o.rounded()
	}
	return d.(decoder[V])
}

// rounded is floats for float32.
func (o Options) rounded() decoder[float32] {
	if o.Loss == nil {
		return appendFloats
	}
	return func(dst []float32, h header, raw []byte) ([]float32, error) {
		if h.kind == 'f' && h.size == 8 {
			var wide [blockBytes / 8]float64
			for i := range len(raw) / 8 {
				wide[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
			}
			_, loss := formats.Narrow[float32](wide[:len(raw)/8])
			o.Loss.Add(loss)
		}
		return appendFloats(dst, h, raw)
	}
}

// appendWide decodes any number to float64.
func appendWide(dst []float64, h header, raw []byte) ([]float64, error) {
	le := binary.LittleEndian
	switch {
	case h.kind == 'f' && h.size == 8:
		for ; len(raw) > 0; raw = raw[8:] {
			dst = append(dst, math.Float64frombits(le.Uint64(raw)))
		}
	case h.kind == 'f': // exact
		narrow, err := appendFloats(nil, h, raw)
		if err != nil {
			return nil, err
		}
		at := len(dst)
		dst = append(dst, make([]float64, len(narrow))...)
		formats.ConvertSlice(dst[at:], narrow)
	default:
		return appendIntegers(dst, h, raw), nil
	}
	return dst, nil
}

// appendIntegers decodes integers, each rounded once.
func appendIntegers[T float32 | float64](dst []T, h header, raw []byte) []T {
	unsigned := h.kind == 'u' && h.size == 8 // beyond int64
	for ; len(raw) > 0; raw = raw[h.size:] {
		if unsigned {
			dst = append(dst, T(binary.LittleEndian.Uint64(raw)))
		} else {
			dst = append(dst, T(h.integer(raw)))
		}
	}
	return dst
}

// appendFloats decodes any number.
func appendFloats(dst []float32, h header, raw []byte) ([]float32, error) {
	le := binary.LittleEndian
	switch {
	case h.kind == 'f' && h.size == 2:
		return appendHalves(dst, raw), nil
	case h.kind == 'f' && h.size == 4:
		for ; len(raw) > 0; raw = raw[4:] {
			dst = append(dst, math.Float32frombits(le.Uint32(raw)))
		}
	case h.kind == 'f':
		return appendDoubles(dst, raw)
	default:
		return appendIntegers(dst, h, raw), nil
	}
	return dst, nil
}

func appendHalves(dst []float32, raw []byte) []float32 {
	var bits [1024]half.F16
	for len(raw) > 0 {
		n := min(len(raw)/2, len(bits))
		for i := range bits[:n] {
			bits[i] = half.F16(binary.LittleEndian.Uint16(raw[2*i:]))
		}
		at := len(dst)
		dst = append(dst, make([]float32, n)...)
		half.Decode(dst[at:], bits[:n])
		raw = raw[2*n:]
	}
	return dst
}

func appendDoubles(dst []float32, raw []byte) ([]float32, error) {
	for ; len(raw) > 0; raw = raw[8:] {
		x := math.Float64frombits(binary.LittleEndian.Uint64(raw))
		f := float32(x)
		if math.IsInf(float64(f), 0) && !math.IsInf(x, 0) {
			return nil, fmt.Errorf("element %d: %v is beyond the range of float32", len(dst), x)
		}
		dst = append(dst, f)
	}
	return dst, nil
}

// appendOffsets decodes integers; those beyond int64 become negative.
func appendOffsets(dst []int64, h header, raw []byte) ([]int64, error) {
	if h.kind != 'i' && h.kind != 'u' {
		return nil, fmt.Errorf("element type %c%d, want an integer", h.kind, h.size)
	}
	for ; len(raw) > 0; raw = raw[h.size:] {
		dst = append(dst, h.integer(raw))
	}
	return dst, nil
}

// appendIndices decodes integers that must be in the range of int32.
func appendIndices(dst []int32, h header, raw []byte) ([]int32, error) {
	if h.kind != 'i' && h.kind != 'u' {
		return nil, fmt.Errorf("element type %c%d, want an integer", h.kind, h.size)
	}
	for ; len(raw) > 0; raw = raw[h.size:] {
		v := h.integer(raw)
		if v != int64(int32(v)) {
			return nil, fmt.Errorf("element %d: index %d is out of range", len(dst), v)
		}
		dst = append(dst, int32(v))
	}
	return dst, nil
}

// integer returns the integer or bool at the start of raw.
func (h header) integer(raw []byte) int64 {
	var v uint64
	switch h.size {
	case 1:
		v = uint64(raw[0])
	case 2:
		v = uint64(binary.LittleEndian.Uint16(raw))
	case 4:
		v = uint64(binary.LittleEndian.Uint32(raw))
	case 8:
		v = binary.LittleEndian.Uint64(raw)
	}
	switch h.kind {
	case 'i':
		shift := 64 - 8*h.size
		return int64(v) << shift >> shift
	case 'b':
		return int64(min(v, 1))
	}
	return int64(v)
}

// descrOf returns NumPy's name of the type that T is written as.
func descrOf[T formats.Value]() string {
	switch formats.TypeOf[T]() {
	case dtype.F16:
		return "<f2"
	case dtype.F64:
		return "<f8"
	}
	return "<f4"
}

func writeValues[T formats.Value](w io.Writer, s []T) error {
	var f [2048]float32
	var raw []byte
	for len(s) > 0 {
		n := min(len(s), len(f))
		raw = raw[:0]
		switch h := any(s[:n]).(type) {
		case []half.F16:
			for _, v := range h {
				raw = binary.LittleEndian.AppendUint16(raw, uint16(v))
			}
		case []float64:
			for _, v := range h {
				raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
			}
		default:
			formats.ConvertSlice(f[:], s[:n])
			for _, v := range f[:n] {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
			}
		}
		if _, err := w.Write(raw); err != nil {
			return err
		}
		s = s[n:]
	}
	return nil
}

func writeInts[I int32 | int64](w io.Writer, s []I, size int) error {
	raw := make([]byte, 0, blockBytes)
	for len(s) > 0 {
		n := min(len(s), blockBytes/size)
		raw = raw[:0]
		for _, v := range s[:n] {
			if size == 4 {
				raw = binary.LittleEndian.AppendUint32(raw, uint32(v))
			} else {
				raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
			}
		}
		if _, err := w.Write(raw); err != nil {
			return err
		}
		s = s[n:]
	}
	return nil
}
