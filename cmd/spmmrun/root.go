// The command line.

package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/spmmrun/spmm"
)

// execute runs the command that args name.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer, unfinished *temporaries) error {
	c := newRoot(unfinished)
	c.SetArgs(args)
	c.SetOut(stdout)
	c.SetErr(stderr)
	return c.ExecuteContext(ctx)
}

func newRoot(unfinished *temporaries) *cobra.Command {
	j := &job{unfinished: unfinished}
	c := &cobra.Command{
		Use:   "spmmrun [flags] MATRIX",
		Short: "Multiply a sparse matrix by a dense one on any GPU, and check the answer",
		Long: `spmmrun computes C = alpha·A·B + beta·C for a sparse matrix A and a dense B on the device of your
choice, checks the answer against exact arithmetic, and reports the time beside the least that the
device could take.

MATRIX is a file (FILE.mtx, also .gz; FILE.smtx; FILE.npz of SciPy; FILE.safetensors, which spmmrun convert
makes in any format) or a generated matrix (gen:KIND,key=value,… such as
gen:uniform,rows=4096,density=0.05). B is random unless --b names a file.

Exit codes: 0 right, 1 wrong answer, 2 usage or bad input, 3 backend unavailable.`,
		Example: `  spmmrun matrix.mtx
  spmmrun --backend vulkan --precision f16 -n 512 gen:vector,rows=4096,density=0.1,v=8
  spmmrun --b B.npy -o C.npy --report json matrix.mtx.gz`,
		Args:          oneMatrix,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, args []string) error {
			j.matrix, j.colsGiven, j.precisionGiven = args[0], c.Flags().Changed("cols"), c.Flags().Changed("precision")
			j.pGiven = c.Flags().Changed("p")
			return j.run(c.Context(), c.OutOrStdout(), newProgress(c.ErrOrStderr()))
		},
	}
	f := c.Flags()
	f.SortFlags = false
	j.backend = "auto"
	f.Var(deviceName{&j.backend}, "backend", "device to run on; auto takes the fastest")
	addChoice(c, &j.format, "format", "sparse format on the device", append([]string{"auto"}, spmm.Formats()...)...)
	f.BoolVar(&j.tune, "tune", false, "measure the formats that are predicted to be near the best, take the fastest and remember it")
	addPrecision(c, &j.precision)
	addChoice(c, &j.mode, "mode", "how sums are formed: as suits the device, or with the same bits on all", "fast", reproducible)
	addChoice(c, &j.p, "p", "bits that reproducible mode keeps of a row's or column's largest element; auto keeps all", precisions...)
	addCount(c, &j.cols, "cols", "n", 128, 1, "columns of B")
	f.StringVar(&j.bFile, "b", "", "read B from `FILE.npy` instead of making a random one")
	addSeed(c, &j.seed)
	addNumber(c, &j.alpha, "alpha", 1, "factor of A·B")
	addNumber(c, &j.beta, "beta", 0, "factor of C, which is random if this is not 0")
	f.StringVarP(&j.out, "out", "o", "", "write C to `FILE.npy`")
	addChoice(c, &j.verify, "verify", "how much of C to check", "sample", "full", "none")
	addCount(c, &j.warmup, "warmup", "", 3, 0, "runs before those that are timed")
	addCount(c, &j.repeats, "repeats", "", 20, 1, "runs that are timed; each is a batch of multiplications if they are short")
	addReport(c, &j.report)
	c.AddCommand(newDevices(), newInspect(unfinished), newConvert(unfinished),
		newConform(unfinished), newVerify(), newCompare(), newVersion())
	return c
}
