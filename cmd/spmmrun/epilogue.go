// Epilogues: the flags --bias, --bias-of and --activation, and what is reported of them.

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/printable"
)

// What a bias is of.
const (
	ofEither  = "auto"
	ofRows    = "row"
	ofColumns = "column"
)

// epilogueFlags hold the command line's flags.
type epilogueFlags struct {
	biasFile, biasOf, activation string
}

// activations are by the words that --activation takes, the default first.
var activations = []struct {
	name   string
	oracle oracle.Activation
}{{"none", oracle.NoActivation}, {"relu", oracle.ReLU}, {"gelu", oracle.GELU}, {"silu", oracle.SiLU}}

func (e *epilogueFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&e.biasFile, "bias", "", "add the vector in `FILE.npy` to C: an element for each row, or for each column")
	addChoice(c, &e.biasOf, "bias-of", "what the vector has elements for, where its length does not tell", ofEither, ofRows, ofColumns)
	var names []string
	for _, a := range activations {
		names = append(names, a.name)
	}
	addChoice(c, &e.activation, "activation", "what is applied to C last", names...)
}

// check refuses flags that do not fit together.
func (e *epilogueFlags) check(mode string) error {
	switch {
	case e.biasFile == "" && e.biasOf != ofEither:
		return errors.New("--bias-of is for --bias")
	case mode == reproducible && e.activation != "none" && e.activation != "relu":
		return fmt.Errorf("--activation %s is for --mode fast: reproducible mode has relu alone, whose bits are the same everywhere", e.activation)
	}
	return nil
}

// readEpilogue reads the bias and returns the epilogue for a C of rows×cols.
func readEpilogue[S oracle.Number](ctx context.Context, e *epilogueFlags,
	rows, cols int) (oracle.EpilogueOf[S], error) {
	var out oracle.EpilogueOf[S]
	for _, a := range activations {
		if a.name == e.activation {
			out.Activation = a.oracle
		}
	}
	if e.biasFile == "" {
		return out, nil
	}
	d, err := loadDense[S](ctx, e.biasFile)
	if err != nil {
		return out, err
	}
	if d.Rows != 1 && d.Cols != 1 {
		return out, fmt.Errorf("%s: the bias is %d×%d: want a vector", e.biasFile, d.Rows, d.Cols)
	}
	v := make([]S, 0, d.Rows*d.Cols)
	for i := range d.Rows {
		for j := range d.Cols {
			v = append(v, d.At(i, j))
		}
	}
	of, err := e.of(len(v), rows, cols)
	if of == ofRows {
		out.RowBias = v
	} else {
		out.ColBias = v
	}
	return out, err
}

// of tells what a bias of n elements is of.
func (e *epilogueFlags) of(n, rows, cols int) (string, error) {
	c := fmt.Sprintf("%s: the bias has %d elements, C is %d×%d", e.biasFile, n, rows, cols)
	row, column := fmt.Sprintf("%d, one for each row", rows), fmt.Sprintf("%d, one for each column", cols)
	switch {
	case e.biasOf == ofEither && n == rows && n == cols && n != 1: // one element is of the one row and column
		return "", fmt.Errorf("%s: say --bias-of %s or %s", c, ofRows, ofColumns)
	case e.biasOf != ofColumns && n == rows:
		return ofRows, nil
	case e.biasOf != ofRows && n == cols:
		return ofColumns, nil
	case e.biasOf == ofRows:
		return "", fmt.Errorf("%s: want %s", c, row)
	case e.biasOf == ofColumns:
		return "", fmt.Errorf("%s: want %s", c, column)
	}
	return "", fmt.Errorf("%s: want %s, or %s", c, row, column)
}

// onDevice returns an epilogue as package spmm takes it on a device, or, in row-major order, package dist. Its bias is
// to be closed with close.
func onDevice[S oracle.Number](ctx context.Context, dev *spmm.Device, e oracle.EpilogueOf[S],
	anyOrder bool) (out spmm.Epilogue, close func(), err error) {
	close = func() {}
	out.Activation, err = spmm.ParseActivation(activations[e.Activation].name)
	d, ok := biasOf(e)
	if err != nil || !ok {
		return out, close, err
	}
	several := dev.Devices()[0] != dev // where tensors are row-major
	x, err := spmm.NewTensor[S](dev, d.Rows, d.Cols, d.ColMajor && anyOrder && !several)
	if err != nil {
		return out, close, err
	}
	if e.RowBias != nil {
		out.RowBias = x
	} else {
		out.ColBias = x
	}
	return out, func() { x.Close() }, x.Upload(ctx, d)
}

// biasOf returns an epilogue's bias as a matrix, if there is one.
func biasOf[S oracle.Number](e oracle.EpilogueOf[S]) (d *formats.Dense[S], ok bool) {
	if e.RowBias != nil {
		return &formats.Dense[S]{Rows: len(e.RowBias), Cols: 1, LD: max(1, len(e.RowBias)), ColMajor: true, Data: e.RowBias},
			true
	}
	return &formats.Dense[S]{Rows: 1, Cols: len(e.ColBias), LD: max(1, len(e.ColBias)), Data: e.ColBias}, e.ColBias != nil
}

// epilogueReport describes an epilogue in a report.
type epilogueReport struct {
	Bias       string `json:"bias,omitempty"` // its file
	BiasOf     string `json:"bias_of,omitempty"`
	Activation string `json:"activation,omitempty"`
}

// newEpilogueReport reports an epilogue, nil if it does nothing.
func newEpilogueReport[S oracle.Number](f epilogueFlags, e oracle.EpilogueOf[S]) *epilogueReport {
	r := epilogueReport{Bias: f.biasFile}
	switch {
	case e.RowBias != nil:
		r.BiasOf = ofRows
	case e.ColBias != nil:
		r.BiasOf = ofColumns
	}
	if e.Activation != oracle.NoActivation {
		r.Activation = f.activation
	}
	if r == (epilogueReport{}) {
		return nil
	}
	return &r
}

// biasBytes returns the bytes that reading the bias moves.
func biasBytes[S oracle.Number](e oracle.EpilogueOf[S]) int64 {
	return int64(formats.TypeOf[S]().Size()) * int64(len(e.RowBias)+len(e.ColBias))
}

func (r *epilogueReport) String() string {
	if r.Bias == "" {
		return r.Activation
	}
	s := fmt.Sprintf("bias of each %s, %s", r.BiasOf, printable.String(r.Bias))
	if r.Activation != "" {
		s += "; " + r.Activation
	}
	return s
}
