// Command gonum is a peer of spmmrun bench: gonum's blas32.Gemm on all cores, which multiplies A with its zeros and
// skips rows of B that a zero meets. internal/benchmark/peer.go says which requests it reads and what it answers.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// largest is the most numbers of a dense A: 1 GiB.
const largest = 1 << 28

type request struct {
	Op, File, Precision string
	Times               int
}

type answer struct {
	Error       string   `json:"error,omitempty"`
	Name        string   `json:"name,omitempty"`
	Description string   `json:"description,omitempty"`
	Algorithms  []string `json:"algorithms,omitempty"`
	US          float64  `json:"us,omitempty"`
	Clock       string   `json:"clock,omitempty"`
}

// product is the operands, with A's zeros.
type product struct{ a, b, c blas32.General }

func main() {
	var p *product
	lines := bufio.NewScanner(os.Stdin)
	replies := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var r request
		var said answer
		err := json.Unmarshal(lines.Bytes(), &r)
		if err == nil {
			said, err = reply(r, &p)
		}
		if err != nil {
			said = answer{Error: err.Error()}
		}
		if err := replies.Encode(said); err != nil {
			os.Exit(1)
		}
	}
}

// reply answers a request; p is the prepared product.
func reply(r request, p **product) (answer, error) {
	switch {
	case r.Op == "hello":
		return answer{Name: "gonum", Description: fmt.Sprintf("gonum %s blas32.Gemm, %d threads", version(),
			runtime.GOMAXPROCS(0))}, nil
	case r.Op == "close":
		*p = nil
		return answer{}, nil
	case r.Op == "prepare":
		*p = nil
		if r.Precision != "f32" {
			return answer{}, fmt.Errorf("f32 alone")
		}
		x, err := read(r.File)
		*p = x
		return answer{Algorithms: []string{"dense"}}, err
	case r.Op == "run" && *p != nil:
		start := time.Now()
		for range max(1, r.Times) {
			(*p).multiply()
		}
		return answer{US: float64(time.Since(start).Nanoseconds()) / 1e3 / float64(max(1, r.Times)), Clock: "host"}, nil
	case r.Op == "output" && *p != nil:
		(*p).multiply()
		return answer{}, (*p).write(r.File)
	}
	return answer{}, fmt.Errorf("no such request now")
}

func (p *product) multiply() { blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, p.a, p.b, 0, p.c) }

// read reads a product and brings A to dense form.
func read(name string) (*product, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	var size [4]int64 // M, K, nnz, N
	if err := binary.Read(in, binary.LittleEndian, &size); err != nil {
		return nil, err
	}
	m, k, nnz, n := int(size[0]), int(size[1]), int(size[2]), int(size[3])
	if size[0]*size[1] > largest {
		return nil, fmt.Errorf("A of %d×%d is too large with its zeros", m, k)
	}
	starts, columns, values := make([]int32, m+1), make([]int32, nnz), make([]float32, nnz)
	p := &product{general(m, k), general(k, n), general(m, n)}
	for _, x := range []any{starts, columns, values, p.b.Data} {
		if err := binary.Read(in, binary.LittleEndian, x); err != nil {
			return nil, err
		}
	}
	for i := range m {
		for at := starts[i]; at < starts[i+1]; at++ {
			p.a.Data[i*p.a.Stride+int(columns[at])] += values[at]
		}
	}
	return p, nil
}

func general(rows, cols int) blas32.General {
	return blas32.General{Rows: rows, Cols: cols, Stride: max(1, cols), Data: make([]float32, rows*cols)}
}

// write writes C.
func (p *product) write(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(io.Writer(f), 1<<20)
	if err := binary.Write(out, binary.LittleEndian, p.c.Data); err != nil {
		f.Close()
		return err
	}
	if err := out.Flush(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// version is that of the module gonum.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "gonum.org/v1/gonum" {
				return m.Version
			}
		}
	}
	return ""
}
