// spmmrun convert

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/spf13/cobra"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/load"
	"github.com/spmmrun/spmm/formats/mtx"
	"github.com/spmmrun/spmm/formats/npy"
	"github.com/spmmrun/spmm/formats/safetensors"
	"github.com/spmmrun/spmm/formats/smtx"
	"github.com/spmmrun/spmm/internal/printable"
)

// conversion holds the options of the command line.
type conversion struct {
	in, out    string
	to         string
	precision  string
	quantise   string
	backend    string // "": the format's own packing
	cols       int
	seed       uint64
	force      bool
	options    map[string]*int // of formats, by name
	unfinished *temporaries
}

func newConvert(unfinished *temporaries) *cobra.Command {
	v := &conversion{unfinished: unfinished, options: map[string]*int{}}
	c := &cobra.Command{
		Use:   "convert [flags] IN OUT",
		Short: "Write a matrix to a file of another type, or encoded in a format",
		Long: `convert reads any matrix that spmmrun reads and writes it to OUT, whose name tells the type of file:

  .mtx, .mtx.gz  Matrix Market
  .smtx          DLMC: the pattern without values
  .npz           SciPy
  .safetensors   in the format that --to names; with --backend in the packing that the device's kernel
                 takes, so that spmmrun --format need not encode it again (--format auto may take another)

OUT appears when it is complete.`,
		Example: `  spmmrun convert matrix.mtx.gz matrix.npz
  spmmrun convert --to cvse --v 16 --precision f16 matrix.mtx matrix.safetensors
  spmmrun convert --to cvse --backend cuda --precision f16 weights.smtx weights.safetensors`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("want two files, IN and OUT, not %d", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			v.in, v.out = args[0], args[1]
			if err := v.check(c.Flags().Changed); err != nil {
				return err
			}
			p := newProgress(c.ErrOrStderr())
			defer p.end()
			done, err := v.run(c.Context(), p)
			if err != nil {
				return err
			}
			p.end()
			_, err = fmt.Fprintln(c.OutOrStdout(), done)
			return err
		},
	}
	f := c.Flags()
	f.SortFlags = false
	var names []string
	for _, format := range load.Formats() {
		names = append(names, format.Name)
	}
	addChoice(c, &v.to, "to", "format of the matrix in a .safetensors file", names...)
	addChoice(c, &v.precision, "precision", "element type to round values to; unchanged by default, but f64 becomes f32 in other files than .safetensors", "same", "f32", "f16", "bf16", "f64")
	addChoice(c, &v.quantise, "quantise", "round values to 8 bits, with a scale for each row and 128 columns, in place of a format", "none", "int8", "e4m3")
	addBackend(c, deviceName{&v.backend}, "pack as this device's kernel takes it")
	addCount(c, &v.cols, "cols", "", 128, 1, "columns of B to choose the device's kernel for")
	v.addOptions(c)
	addSeed(c, &v.seed, "")
	addForce(c, &v.force)
	return c
}

// addOptions adds a flag for each option of a format.
func (v *conversion) addOptions(c *cobra.Command) {
	usage := map[string][]string{}
	var order []string
	for _, f := range load.Formats() {
		for _, o := range f.Options {
			if usage[o.Name] == nil {
				order = append(order, o.Name)
			}
			usage[o.Name] = append(usage[o.Name], fmt.Sprintf("%s: %s (default %d)", f.Name, o.Usage, o.Default))
		}
	}
	for _, name := range order {
		n := new(int)
		v.options[name] = n
		addCount(c, n, name, "", 0, 0, strings.Join(usage[name], "; "))
		c.Flags().Lookup(name).DefValue = "" // each format has its own, which usage names
	}
}

// check refuses what does not go together.
func (v *conversion) check(changed func(flag string) bool) error {
	if v.kind() == "" {
		return fmt.Errorf("%s: unknown file type (want a name that ends in %s)", v.out, orList(fileTypes))
	}
	f, err := load.Format(v.to)
	if err != nil {
		return err
	}
	for name := range v.options {
		if !changed(name) {
			delete(v.options, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.options)) {
		if !slices.ContainsFunc(f.Options, func(o formats.Option) bool { return o.Name == name }) {
			return fmt.Errorf("--%s: format %s has no such option", name, v.to)
		}
	}
	switch {
	case v.quantise != "none" && (changed("to") || changed("backend") || changed("precision") || len(v.options) > 0):
		return errors.New("--quantise: a quantised matrix is packed when it is prepared: leave out --to, --precision, --backend and options of formats")
	case v.kind() != ".safetensors" && (v.quantise != "none" || changed("to") || changed("backend") || len(v.options) > 0):
		return fmt.Errorf("%s: only .safetensors files hold a matrix in a format of its own", v.out)
	case v.backend != "" && len(v.options) > 0:
		return errors.New("--backend decides on the packing: leave out the options of the format")
	}
	return nil
}

// fileTypes are the ends of names that tell types of files.
var fileTypes = []string{".mtx", ".mtx.gz", ".smtx", ".npz", ".safetensors"}

// kind returns what the name of OUT ends in, "" if that is unknown.
func (v *conversion) kind() string {
	for _, end := range fileTypes {
		if strings.HasSuffix(strings.ToLower(v.out), end) {
			return end
		}
	}
	return ""
}

// run converts and says in a line what was written.
func (v *conversion) run(ctx context.Context, p *progress) (string, error) {
	out, err := newOutput(v.out, v.unfinished, v.force, v.in)
	if err != nil {
		return "", err
	}
	in, err := openMatrix(ctx, v.in, v.seed, typeOf(v.precision), p)
	if err != nil {
		return "", err
	}
	m, err := v.encode(ctx, byRows(in), p)
	if err != nil {
		return "", err
	}
	p.step("writing "+v.out, -1)
	var size int64
	err = out.write(func(w io.Writer) error {
		count := &counter{ctx: ctx, w: w}
		b := bufio.NewWriterSize(count, 1<<20)
		err := writeMatrix(b, m, v.kind())
		if err == nil {
			err = b.Flush()
		}
		size = count.n
		return err
	})
	if errors.As(err, new(*fs.PathError)) { // which names the file
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", v.out, err)
	}
	rows, cols := m.Dims()
	return fmt.Sprintf("%s: %s, %d×%d, %d entries, %v, %s", printable.String(v.out),
		withOptions(m.Format(), formats.OptionsOf(m)), rows, cols, m.NNZ(), m.Type(), byteSize(size)), nil
}

// encode brings the matrix into the format and the element type that were requested.
func (v *conversion) encode(ctx context.Context, in formats.Encoded, p *progress) (formats.Encoded, error) {
	if kind := quantised[v.quantise]; kind != dtype.Invalid {
		if in.Type() == kind {
			return in, nil
		}
		q, _, err := formats.Quantise(in.Sparse(), kind)
		if err != nil {
			return nil, fmt.Errorf("--quantise: %s: %w", v.in, err)
		}
		return q, nil
	}
	typ := in.Type()
	if _, is := in.(*formats.Quantised); is { // its scales are multiplied in
		typ = dtype.F32
	}
	if v.precision != "same" {
		var err error
		if typ, err = dtype.Parse(v.precision); err != nil {
			return nil, err
		}
	}
	if in.Format() == v.to && in.Type() == typ && v.backend == "" && len(v.options) == 0 {
		return in, nil
	}
	if typ == dtype.F16 && in.Type() != typ {
		if err := fitsF16(v.in, float32CSR(in).Val); err != nil {
			return nil, err
		}
	}
	a := formats.ConvertTo(in.Sparse(), typ)
	p.step("encoding", -1)
	if v.backend != "" {
		return v.encodeFor(ctx, a)
	}
	f, err := load.Format(v.to)
	if err != nil {
		return nil, err
	}
	options := map[string]int{}
	for name, n := range v.options {
		options[name] = *n
	}
	return f.Encode(a, options)
}

// encodeFor packs the matrix for a device.
func (v *conversion) encodeFor(ctx context.Context, a formats.Sparse) (formats.Encoded, error) {
	dev, err := spmm.Open(ctx, v.backend)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	return spmm.Encode(ctx, dev, a, spmm.Options{Format: v.to, Cols: v.cols})
}

// writeMatrix writes a file of a type.
func writeMatrix(w io.Writer, m formats.Encoded, kind string) error {
	switch kind {
	case ".safetensors":
		return safetensors.WriteMatrix(w, m)
	case ".mtx.gz":
		z := gzip.NewWriter(w)
		if err := writeMatrix(z, m, ".mtx"); err != nil {
			return err
		}
		return z.Close()
	case ".mtx":
		return mtx.Write(w, m.Sparse())
	case ".smtx":
		return smtx.Write(w, m.Sparse())
	}
	return npy.WriteSparse(w, m.Sparse())
}

// counter counts what is written, until the context is done.
type counter struct {
	ctx context.Context
	w   io.Writer
	n   int64
}

func (c *counter) Write(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
