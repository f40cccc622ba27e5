// Other programs that compute the same products.
//
// A peer reads requests from its standard input and answers each with one line on its standard output, both JSON
// objects, a line each; what it prints on stderr is the user's to read. An answer with "error" says why a request
// cannot be met.
//
//	{"op":"hello"}                                        → {"name":"eigen","description":"Eigen 3.4.0, 2 threads"}
//	{"op":"prepare","file":F,"precision":"f32"}           → {"algorithms":["row-major",…],"rounded":["f16",…]}
//	{"op":"run","algorithm":0,"times":20}                 → {"us":12.5,"clock":"device"}   of one product, on average
//	{"op":"output","algorithm":0,"file":F}                → {}   C is written to F: M×N numbers, row-major
//	{"op":"close"}                                        → {}   what was prepared is no longer needed
//
// F of prepare has, little-endian: M, K, nnz and N (64 bits each), M+1 row starts (32 bits), nnz columns (32 bits),
// nnz values and K×N elements of B, row-major (f32 in any precision). C's numbers are of f32, in precision f64 of
// f64. "rounded" may be missing: the type that an algorithm rounds C's elements to, "" being that of its numbers. So
// may "prepare_us", the microseconds that preparing A took for each algorithm. The end of input ends the peer.

package benchmark

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/printable"
)

// peer is a program that runs.
type peer struct {
	name, description string
	command           *exec.Cmd
	in                io.WriteCloser
	out               *bufio.Reader
	folder            string
	err               error // it answered something else than the protocol says, and is not asked again
}

type request struct {
	Op        string `json:"op"`
	File      string `json:"file,omitempty"`
	Precision string `json:"precision,omitempty"`
	Algorithm int    `json:"algorithm"`
	Times     int    `json:"times,omitempty"`
}

type reply struct {
	Error       string    `json:"error"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Algorithms  []string  `json:"algorithms"`
	Rounded     []string  `json:"rounded"`
	PrepareUS   []float64 `json:"prepare_us"`
	US          float64   `json:"us"`
	Clock       string    `json:"clock"`
}

// startPeers starts the programs; those returned are running even if there is an error.
func startPeers(ctx context.Context, programs []string) ([]*peer, error) {
	var peers []*peer
	for _, path := range programs {
		p, err := startPeer(ctx, path)
		if p != nil {
			peers = append(peers, p)
		}
		if err != nil {
			return peers, fmt.Errorf("peer %s: %w", path, err)
		}
	}
	return peers, nil
}

func startPeer(ctx context.Context, path string) (*peer, error) {
	p := &peer{command: exec.CommandContext(ctx, path)}
	p.command.Stderr = printable.NewWriter(os.Stderr)
	p.command.WaitDelay = time.Second
	var err error
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReaderSize(out, 1<<16)
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	if p.folder, err = os.MkdirTemp("", "spmm-peer"); err != nil {
		return p, err
	}
	a, err := p.ask(ctx, request{Op: "hello"})
	if err == nil && a.Name == "" {
		err = errors.New("it has no name")
	}
	p.name, p.description = printable.String(a.Name), printable.String(a.Description)
	return p, err
}

// ask sends a request and returns the answer.
func (p *peer) ask(ctx context.Context, r request) (reply, error) {
	var a reply
	if p.err != nil {
		return a, p.err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return a, err
	}
	_, err = p.in.Write(append(line, '\n'))
	if err == nil {
		line, err = p.out.ReadSlice('\n')
	}
	if ctx.Err() != nil {
		return a, ctx.Err()
	}
	if err == nil {
		err = json.Unmarshal(bytes.TrimSpace(line), &a)
	}
	if err != nil {
		p.err = fmt.Errorf("it does not answer %q as the protocol says: %w", r.Op, err)
		return a, p.err
	}
	if a.Error != "" {
		return a, errors.New(printable.String(a.Error))
	}
	return a, nil
}

func (p *peer) close() {
	_ = p.in.Close()
	_ = p.command.Wait()
	if p.folder != "" {
		_ = os.RemoveAll(p.folder)
	}
}

// algorithm is one of a peer's ways to compute the product that was prepared last.
type algorithm struct {
	*peer
	name       string
	index      int
	rows, cols int // of C
	rounded    dtype.Type
	prepared   float64 // seconds that preparing A took; 0 if the peer does not say it
	open       *int
	device     bool // it computes on a device, by whose clock it was timed
}

// prepare gives the peer a product and returns its ways to compute it.
func (p *peer) prepare(
	ctx context.Context, a *formats.CSR[float32], b *formats.Dense[float32], prec dtype.Type,
) ([]*algorithm, error) {
	if a.NNZ() > math.MaxInt32 {
		return nil, errors.New("the matrix has too many entries for peers")
	}
	file := filepath.Join(p.folder, "product")
	if err := writeProduct(file, a, b); err != nil {
		return nil, err
	}
	defer os.Remove(file)
	answer, err := p.ask(ctx, request{Op: "prepare", File: file, Precision: prec.String()})
	if err != nil {
		return nil, err
	}
	if len(answer.Algorithms) == 0 {
		return nil, errors.New("it has no algorithm for this")
	}
	open := len(answer.Algorithms)
	var out []*algorithm
	for i, name := range answer.Algorithms {
		rounded := dtype.F32
		if prec == dtype.F64 {
			rounded = prec
		}
		if i < len(answer.Rounded) && answer.Rounded[i] != "" {
			if rounded, err = dtype.Parse(answer.Rounded[i]); err != nil {
				_, _ = p.ask(ctx, request{Op: "close"})
				return nil, err
			}
		}
		x := &algorithm{
			peer: p, name: printable.String(name), index: i, rows: a.Rows, cols: b.Cols, rounded: rounded, open: &open,
		}
		if i < len(answer.PrepareUS) && answer.PrepareUS[i] > 0 && answer.PrepareUS[i] < 1e12 {
			x.prepared = answer.PrepareUS[i] / 1e6
		}
		out = append(out, x)
	}
	return out, nil
}

// writeProduct writes the file of prepare.
func writeProduct(name string, a *formats.CSR[float32], b *formats.Dense[float32]) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	starts := make([]int32, len(a.RowPtr))
	for i, x := range a.RowPtr {
		starts[i] = int32(x)
	}
	for _, x := range []any{[]int64{int64(a.Rows), int64(a.Cols), a.NNZ(), int64(b.Cols)}, starts, a.ColIdx, a.Val} {
		err = errors.Join(err, binary.Write(w, binary.LittleEndian, x))
	}
	for i := range b.Rows {
		err = errors.Join(err, binary.Write(w, binary.LittleEndian, b.Data[i*b.LD:i*b.LD+b.Cols]))
	}
	return errors.Join(err, w.Flush(), f.Close())
}

func (x *algorithm) again(ctx context.Context, times int) (time.Duration, string, error) {
	a, err := x.ask(ctx, request{Op: "run", Algorithm: x.index, Times: times})
	if err == nil && !(a.US > 0 && a.US < 1e12) {
		err = fmt.Errorf("it took %v µs", a.US)
	}
	if x.device = a.Clock == "device"; !x.device {
		a.Clock = "host"
	}
	return time.Duration(a.US * float64(time.Microsecond)), a.Clock, err
}

// peerRest is how long threads of OpenMP look for work before they sleep, and longer: those of libgomp do so for 5
// ms. On as many cores as there are threads, whoever computes meanwhile has a core less.
const peerRest = 10 * time.Millisecond

func (x *algorithm) quiet(ctx context.Context) {
	if x.device {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(peerRest):
	}
}

func (x *algorithm) check(ctx context.Context, r *round) error {
	if r.prec == dtype.F64 {
		return checkOutput[float64](ctx, x, r)
	}
	return checkOutput[float32](ctx, x, r)
}

// checkOutput has the peer write C and verifies it.
func checkOutput[O oracle.Number](ctx context.Context, x *algorithm, r *round) error {
	file := filepath.Join(x.folder, "output")
	defer os.Remove(file)
	if _, err := x.ask(ctx, request{Op: "output", Algorithm: x.index, File: file}); err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	c := formats.NewDense[O](x.rows, x.cols)
	if _, err := io.ReadFull(f, backend.Bytes(c.Data)); err != nil {
		return fmt.Errorf("its output: %w", err)
	}
	return verify(ctx, r, answer[O]{c: c, computed: r.prec, rounded: x.rounded})
}

func (x *algorithm) describe(_ context.Context, r *Result) error {
	r.EncodeS = x.prepared
	return nil
}

// close tells the peer when the last of its algorithms is done with.
func (x *algorithm) close() {
	if *x.open--; *x.open == 0 {
		_, _ = x.ask(context.Background(), request{Op: "close"})
	}
}
