// The header: parsed and checked whole before any element is read.

package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/formats"
)

// MaxHeader is the longest header there may be, in bytes.
const MaxHeader = 100_000_000

const (
	memoryOfHeader = 16       // bytes of memory that a header takes for each of its own, about
	smallHeader    = 64 << 10 // is read whatever the limit
)

const metadataKey = "__metadata__"

// span is a tensor and the bytes it takes, counted from the end of the header.
type span struct {
	Info
	begin, end int64
}

// readHeader returns the metadata, and the tensors in the order of their bytes.
func readHeader(r io.Reader, l formats.Limits) (map[string]string, []span, error) {
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, nil, cutOff(err, "the header's length")
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > MaxHeader {
		return nil, nil, fmt.Errorf("no safetensors data: a header of %d bytes, and %d are the most", n, MaxHeader)
	}
	if limit := l.WithDefaults().Bytes; int64(n) > max(smallHeader, limit/memoryOfHeader) {
		return nil, nil, fmt.Errorf("a header of %d bytes takes memory %w of %d", n, formats.ErrMemory, limit)
	}
	text, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && uint64(len(text)) < n {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, nil, cutOff(err, fmt.Sprintf("the header of %d bytes", n))
	}
	metadata, spans, err := parse(text)
	if err != nil {
		return nil, nil, err
	}
	return metadata, spans, check(spans)
}

func cutOff(err error, what string) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("ends inside %s", what)
	}
	return err
}

// parse reads the JSON object.
func parse(text []byte) (metadata map[string]string, spans []span, err error) {
	if len(text) == 0 || text[0] != '{' {
		return nil, nil, errors.New("no safetensors data: the header is no JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil, nil, notJSON(err)
	}
	names := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, nil, notJSON(err)
		}
		name := key.(string) // of an object's member
		if names[name] {
			return nil, nil, fmt.Errorf("the header has %q twice", name)
		}
		names[name] = true
		if name == metadataKey {
			if err := d.Decode(&metadata); err != nil {
				return nil, nil, notJSON(err)
			}
			continue
		}
		s, err := parseTensor(d, name)
		if err != nil {
			return nil, nil, err
		}
		spans = append(spans, s)
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, notJSON(err)
	}
	if rest := bytes.Trim(text[d.InputOffset():], " "); len(rest) > 0 {
		return nil, nil, errors.New("the header goes on behind its JSON object")
	}
	return metadata, spans, nil
}

func parseTensor(d *json.Decoder, name string) (span, error) {
	var t struct {
		DType       Type    `json:"dtype"`
		Shape       []int64 `json:"shape"`
		DataOffsets []int64 `json:"data_offsets"`
	}
	if err := d.Decode(&t); err != nil {
		return span{}, fmt.Errorf("tensor %q: %w", name, notJSON(err))
	}
	if len(t.DataOffsets) != 2 || t.Shape == nil {
		return span{}, fmt.Errorf("tensor %q: want a dtype, a shape and two data_offsets", name)
	}
	return span{Info{name, t.DType, t.Shape}, t.DataOffsets[0], t.DataOffsets[1]}, nil
}

// notJSON is a decoder's error in words of the file.
func notJSON(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Errorf("the header has %s as %s", wrong.Value, wrong.Field)
	case errors.As(err, &wrong):
		return fmt.Errorf("the header has %s where it must not", wrong.Value)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the header ends inside its JSON object")
	}
	return fmt.Errorf("the header is no JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// check sorts the tensors by place. They must follow each other without gaps and be as long as their
// shapes say.
func check(spans []span) error {
	slices.SortStableFunc(spans, func(x, y span) int {
		return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(x.end, y.end))
	})
	var at int64
	for _, s := range spans {
		n, err := s.bytes()
		switch {
		case err != nil:
			return err
		case s.begin < 0 || s.end < s.begin:
			return fmt.Errorf("tensor %q: data_offsets %d to %d", s.Name, s.begin, s.end)
		case s.end-s.begin != n:
			return fmt.Errorf("tensor %q: %d bytes for shape %v of %s, want %d", s.Name, s.end-s.begin, s.Shape, s.Type, n)
		case s.begin < at:
			return fmt.Errorf("tensor %q: starts at byte %d, inside another tensor", s.Name, s.begin)
		case s.begin > at:
			return fmt.Errorf("tensor %q: starts at byte %d, and no tensor has those from %d on", s.Name, s.begin, at)
		}
		at = s.end
	}
	return nil
}
