// The command line.

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats/gen"
)

// execute runs the command that args name.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer, unfinished *temporaries) error {
	c := newRoot(unfinished)
	c.SetArgs(args)
	c.SetOut(stdout)
	c.SetErr(stderr)
	return c.ExecuteContext(ctx)
}

// indent puts prefix before each line of text.
func indent(text, prefix string) string {
	return prefix + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+prefix) + "\n"
}

func newRoot(unfinished *temporaries) *cobra.Command {
	j := &job{unfinished: unfinished}
	c := &cobra.Command{
		Use:   "spmmrun [flags] MATRIX",
		Short: "Multiply a sparse matrix by a dense one on a GPU or the CPU, and check the answer",
		Long: `spmmrun computes C = alpha·A·B + beta·C for a sparse matrix A and a dense B on the device of your
choice, checks the answer against exact arithmetic, and reports the time next to the least that the
device could take. With --bias and --activation it computes C = act(alpha·A·B + beta·C + bias).

MATRIX is a file, plain or compressed by gzip, - for standard input, or gen:… for a matrix that is generated:

  FILE.mtx          Matrix Market
  FILE.smtx         DLMC: a pattern, whose values are random
  FILE.npz          SciPy: csr, csc or coo
  FILE.npy          NumPy: a dense matrix, whose zeros are left out
  FILE.safetensors  a sparse matrix in any format, as spmmrun convert writes it; or a dense one,
                    FILE.safetensors#TENSOR where there are several
  gen:KIND,key=value,…
` + indent(gen.Usage(), "      ") + `
B is random unless --b names a file.

Several devices, --backend cuda:all or a list, share the columns of B where A fits each of them,
else A's rows; --split says it, too. In --mode reproducible C has the bits of one device.

$SPMM_CACHE names the folder for what is measured on a device and remembered of matrices; by default it is
spmm in the user's cache folder.

Exit codes: 0 right, 1 wrong answer, 2 usage or bad input, 3 backend unavailable or unable, 70 crash,
130 interrupted.`,
		Example: `  spmmrun matrix.mtx
  spmmrun --backend vulkan --precision f16 -n 512 gen:vector,rows=4096,density=0.1,v=8
  spmmrun --b B.npy -o C.npy --report json matrix.mtx.gz
  spmmrun --backend cuda:all -n 512 gen:stencil,side=100
  spmmrun --b B.npy --bias bias.npy --activation relu -o C.npy layer.safetensors`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				if err := suggestCommand(c, args[0]); err != nil {
					return err
				}
			}
			return oneMatrix(c, args)
		},
		ValidArgsFunction: completeMatrix,
		Version:           version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		RunE: func(c *cobra.Command, args []string) error {
			j.matrix, j.colsGiven, j.precisionGiven = args[0], c.Flags().Changed("cols"), c.Flags().Changed("precision")
			j.pGiven = c.Flags().Changed("p")
			return j.run(c.Context(), c.OutOrStdout(), newProgress(c.ErrOrStderr()))
		},
	}
	f := c.Flags()
	f.SortFlags = false
	j.backend = "auto"
	addBackend(c, deviceNames{&j.backend}, "device to run on; auto takes the fastest; cuda:all or a list like cuda:0,1 is several")
	addChoice(c, &j.split, "split", "how several devices share the work: columns of B and C, or rows of A and C", splits...)
	f.Var(&j.memory, "memory", "bytes to use of each device at most, as in 4G")
	addChoice(c, &j.format, "format", "sparse format on the device", append([]string{"auto"}, spmm.Formats()...)...)
	addKernel(c, &j.format, &j.variant)
	f.BoolVar(&j.tune, "tune", false, "measure the formats that are predicted to be near the best, take the fastest and remember it")
	addCount(c, &j.uses, "uses", "", 0, 0, "times that A is to be multiplied, packing and choosing weighed against them; 0: unknown")
	f.BoolVar(&j.transpose, "transpose", false, "multiply with the transpose of A")
	f.BoolVar(&j.right, "right", false, "keep B and C by columns: the product is Y = X·Aᵀ, as a network's layer has X and Y row by row")
	addPrecision(c, &j.precision)
	addChoice(c, &j.quantise, "quantise", "round A's values to 8 bits, with a scale for each row and 128 columns", "none", "int8", "e4m3")
	addChoice(c, &j.mode, "mode", "how sums are formed: as suits the device, or with the same bits on all", "fast", reproducible)
	addChoice(c, &j.p, "p", "bits that reproducible mode keeps of a row's or column's largest element; auto takes as many as lose nothing, or 47", precisions...)
	addCount(c, &j.cols, "cols", "n", 128, 1, "columns of B")
	f.StringVar(&j.bFile, "b", "", "read B from `FILE.npy` instead of making a random one")
	addSeed(c, &j.seed, "B, and of ")
	addNumber(c, &j.alpha, "alpha", 1, "factor of A·B")
	addNumber(c, &j.beta, "beta", 0, "factor of C, which is random if this is not 0")
	j.epilogue.add(c)
	f.StringVarP(&j.out, "out", "o", "", "write C to `FILE.npy`")
	addChoice(c, &j.verify, "verify", "how much of C to check", "sample", "full", "none")
	addChoice(c, &j.exchange, "exchange", exchangeHelp, exchanges...)
	addCount(c, &j.warmup, "warmup", "", 3, 0, "runs before those that are timed")
	addCount(c, &j.repeats, "repeats", "", 20, 1, "runs that are timed; each is a batch of multiplications if they are short")
	addForce(c, &j.force)
	addReport(c, &j.report)
	c.SetVersionTemplate("{{.Version}}\n")
	c.SetFlagErrorFunc(suggestFlag)
	c.AddCommand(newDevices(), newInspect(unfinished), newConvert(unfinished), newSample(unfinished),
		newPropagate(unfinished), newBench(unfinished), newConform(unfinished), newVerify(), newCompare(), newVersion(),
		newMan(), newKernels())
	refuseTopics(c)
	return c
}

// refuseTopics has help refuse what is no command.
func refuseTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil || help == root {
		return
	}
	help.Args = func(_ *cobra.Command, args []string) error {
		if c, rest, err := root.Find(args); err != nil || len(rest) > 0 {
			return fmt.Errorf("help: %s is no command; see %s --help", strings.Join(args, " "), c.CommandPath())
		}
		return nil
	}
}
