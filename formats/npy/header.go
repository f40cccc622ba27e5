// The header of a .npy file: magic, version, and a Python dictionary.

package npy

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

const magic = "\x93NUMPY"

// maxHeader bounds the dictionary; NumPy's own takes about a hundred bytes.
const maxHeader = 64 << 10

// header describes an array.
type header struct {
	kind    byte // as in NumPy's descr: f, i, u, b, …
	size    int  // bytes of an element
	big     bool // big-endian
	fortran bool // first index fastest
	shape   []int64
}

// count returns the number of elements, or an error if that overflows.
func (h header) count() (int64, error) {
	n := int64(1)
	for _, d := range h.shape {
		if d == 0 {
			return 0, nil
		}
	}
	for _, d := range h.shape {
		if n > math.MaxInt64/8/d {
			return 0, fmt.Errorf("array of shape %v is too large", h.shape)
		}
		n *= d
	}
	return n, nil
}

func readHeader(r io.Reader) (header, error) {
	var b [12]byte
	if _, err := io.ReadFull(r, b[:8]); err != nil {
		return header{}, cutOff(err, "the header")
	}
	if string(b[:6]) != magic {
		return header{}, fmt.Errorf("no .npy data: does not start with \\x93NUMPY")
	}
	width := 2 // of the dictionary's length
	switch b[6] {
	case 1:
	case 2, 3:
		width = 4
	default:
		return header{}, fmt.Errorf("version %d.%d of .npy is not supported (1.0 to 3.0)", b[6], b[7])
	}
	if _, err := io.ReadFull(r, b[8:8+width]); err != nil {
		return header{}, cutOff(err, "the header")
	}
	n := binary.LittleEndian.Uint32(b[8:]) // bytes not read are 0
	if n > maxHeader {
		return header{}, fmt.Errorf("header of %d bytes, at most %d are supported", n, maxHeader)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return header{}, cutOff(err, "the header")
	}
	p := parser{rest: string(text)}
	return p.header()
}

// cutOff turns the end of the input inside something into an error that says so.
func cutOff(err error, inside string) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("ends inside %s", inside)
	}
	return err
}

// parser reads the dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
type parser struct{ rest string }

func (p *parser) header() (h header, err error) {
	if !p.take("{") {
		return h, p.unexpected("{")
	}
	seen := map[string]bool{}
	for !p.take("}") {
		key, err := p.quoted()
		if err != nil {
			return h, err
		}
		if !p.take(":") {
			return h, p.unexpected(":")
		}
		switch key {
		case "descr":
			err = p.descr(&h)
		case "fortran_order":
			if h.fortran = p.take("True"); !h.fortran && !p.take("False") {
				err = p.unexpected("True or False")
			}
		case "shape":
			h.shape, err = p.shape()
		default:
			err = fmt.Errorf("unknown key %q in the header", cut(key))
		}
		if err != nil {
			return h, err
		}
		seen[key] = true
		if !p.take(",") && !strings.HasPrefix(p.rest, "}") {
			return h, p.unexpected(", or }")
		}
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return h, fmt.Errorf("no %s in the header", key)
		}
	}
	return h, nil
}

// take skips blanks, and tok if it comes next, and blanks after that.
func (p *parser) take(tok string) bool {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	rest, ok := strings.CutPrefix(p.rest, tok)
	if ok {
		p.rest = strings.TrimLeft(rest, " \t\r\n")
	}
	return ok
}

func (p *parser) unexpected(want string) error {
	return fmt.Errorf("header has %q where %s is expected", cut(p.rest), want)
}

func cut(s string) string {
	if len(s) > 16 {
		return s[:16] + "…"
	}
	return s
}

func (p *parser) quoted() (string, error) {
	for _, q := range []string{"'", `"`} {
		if p.take(q) {
			s, rest, ok := strings.Cut(p.rest, q)
			if !ok {
				return "", p.unexpected("a string")
			}
			p.rest = rest
			p.take("")
			return s, nil
		}
	}
	return "", p.unexpected("a string")
}

func (p *parser) shape() ([]int64, error) {
	shape := []int64{}
	if !p.take("(") {
		return nil, p.unexpected("(")
	}
	for !p.take(")") {
		n := 0
		for n < len(p.rest) && p.rest[n]-'0' <= 9 {
			n++
		}
		v, err := strconv.ParseInt(p.rest[:n], 10, 64)
		if err != nil || len(shape) == 32 {
			return nil, p.unexpected("a size")
		}
		shape, p.rest = append(shape, v), p.rest[n:]
		p.take("L") // of Python 2
		if !p.take(",") && !strings.HasPrefix(p.rest, ")") {
			return nil, p.unexpected(", or )")
		}
	}
	return shape, nil
}

// descr reads an element type such as '<f4'.
func (p *parser) descr(h *header) error {
	if strings.HasPrefix(p.rest, "[") {
		return fmt.Errorf("structured arrays are not supported")
	}
	s, err := p.quoted()
	if err != nil {
		return err
	}
	t := strings.TrimLeft(s, "<>|=")
	if len(t) < 1 || len(s)-len(t) > 1 {
		return fmt.Errorf("unknown element type %q", cut(s))
	}
	h.big, h.kind = s[0] == '>', t[0]
	if h.size, err = strconv.Atoi(t[1:]); err != nil && len(t) > 1 || h.size < 0 || h.size > maxHeader {
		return fmt.Errorf("unknown element type %q", cut(s))
	}
	return nil
}

// unsupported returns the error for an element type that is no number this package reads.
func (h header) unsupported() error {
	names := map[byte]string{'c': "complex", 'O': "object", 'S': "text", 'U': "text", 'V': "structured or raw",
		'M': "date", 'm': "duration"}
	if name := names[h.kind]; name != "" {
		return fmt.Errorf("%s arrays are not supported (f2, f4, f8, i1 to i8, u1 to u8, b1)", name)
	}
	return fmt.Errorf("element type %q is not supported (f2, f4, f8, i1 to i8, u1 to u8, b1)", fmt.Sprint(string(h.kind), h.size))
}

// writeHeader writes a header of version 1.0 that ends at a multiple of 64 bytes.
func writeHeader(w io.Writer, descr string, fortran bool, shape ...int) error {
	order := "False"
	if fortran {
		order = "True"
	}
	sizes := ""
	for _, n := range shape {
		sizes += strconv.Itoa(n) + ", "
	}
	if len(shape) > 1 {
		sizes = strings.TrimSuffix(sizes, ", ")
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", descr, order, sizes)
	pad := 63 - (len(magic)+4+len(dict))%64
	dict += strings.Repeat(" ", pad) + "\n"
	head := binary.LittleEndian.AppendUint16([]byte(magic+"\x01\x00"), uint16(len(dict)))
	_, err := w.Write(append(head, dict...))
	return err
}
