// spmmrun propagate

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/dtype"
)

// propagation holds what the command line asks for.
type propagation struct {
	matrix, backend, format, mode, p string
	exchange                         string
	pGiven, colsGiven                bool
	cols, steps, every               int
	restart                          float32
	normalise, start                 string
	xFile, out, checkpoint, report   string
	seed                             uint64
	force                            bool
	unfinished                       *temporaries
}

// normalisations are by the words that --normalise takes, the default first.
var normalisations = []string{"symmetric", "rows", "none"}

var normalisationOf = map[string]dist.Normalisation{"symmetric": dist.Symmetric, "rows": dist.ByRows, "none": dist.AsIs}

func newPropagate(unfinished *temporaries) *cobra.Command {
	g := &propagation{unfinished: unfinished, backend: "auto", restart: 0.1}
	c := &cobra.Command{
		Use:   "propagate [flags] MATRIX",
		Short: "Propagate vectors along the edges of a graph: personalised PageRank, APPNP",
		Long: `propagate computes --steps times

  X = (1-a)·Â·X + a·X0

for the adjacency matrix Â of a graph, normalised, and a matrix X0 that X begins with: personalised PageRank for
many sources at once, or the propagation of the graph network APPNP. It runs on one device, on several of this
machine, or on the ranks that mpirun or srun start, each with a share of the rows; X has the same bits on any
number of them: in --mode reproducible always, in --mode fast on devices of one kind. X stays on the devices;
ranks exchange only the rows of it that their shares meet, GPUs by NCCL where there is a libnccl.so.2
(SPMM_NCCL_LIBRARY names one).

With --checkpoint the state is kept in a folder every few steps and when all are done. The same command
goes on from there, on any number of ranks, and ends with the same bits; rank 0 reads and writes it.`,
		Example: `  spmmrun propagate --cols 64 --steps 10 gen:rmat,scale=16,values=ones
  spmmrun propagate --backend cuda:all --cols 64 --steps 10 gen:rmat,scale=22
  mpirun -n 4 spmmrun propagate --normalise rows --checkpoint state -o ranks.npy graph.mtx.gz`,
		Args: oneMatrix,
		RunE: func(c *cobra.Command, args []string) error {
			g.matrix, g.pGiven, g.colsGiven = args[0], c.Flags().Changed("p"), c.Flags().Changed("cols")
			p := newProgress(c.ErrOrStderr())
			defer p.end()
			if isList(g.backend) {
				return withGroup(c.Context(), g.backend, func(ctx context.Context, r *ranks) error {
					mine := *g // each has the number of columns of its own
					if r.Rank() != 0 {
						return mine.run(ctx, io.Discard, newProgress(io.Discard), r)
					}
					return mine.run(ctx, c.OutOrStdout(), p, r)
				})
			}
			return withRanks(c.ErrOrStderr(), func(r *ranks) error { return g.run(c.Context(), c.OutOrStdout(), p, r) })
		},
	}
	f := c.Flags()
	f.SortFlags = false
	addBackend(c, deviceNames{&g.backend},
		"device to run on; auto takes the fastest, and of several alike each rank of a machine another; cuda:all or a list like cuda:0,1 is several for one process")
	addChoice(c, &g.format, "format",
		"sparse format on the device; auto is csr in --mode fast, for the bits not to depend on the ranks", append([]string{"auto"}, spmm.Formats()...)...)
	addChoice(c, &g.mode, "mode", "how sums are formed: as suits the device, or with the same bits on all", "fast",
		reproducible)
	addChoice(c, &g.p, "p",
		"bits that reproducible mode keeps of a row's or column's largest element; auto takes as many as lose nothing, or 47", precisions...)
	addCount(c, &g.cols, "cols", "n", 64, 1, "columns of X")
	addCount(c, &g.steps, "steps", "", 10, 1, "steps")
	addNumber(c, &g.restart, "restart", 0.1, "a, the share of X0 in each step, from 0 to 1")
	addChoice(c, &g.normalise, "normalise", "D^-1/2·(A+I)·D^-1/2, or rows that add up to 1, or A as it is; by magnitudes",
		normalisations...)
	addChoice(c, &g.start, "start", "X0: a vertex at random for each column, which has a 1 there alone, or random numbers",
		"vertices", "random")
	f.StringVar(&g.xFile, "x", "", "read X0 from `FILE.npy`")
	addSeed(c, &g.seed, "X0, and of ")
	f.StringVarP(&g.out, "out", "o", "", "write X to `FILE.npy`")
	f.StringVar(&g.checkpoint, "checkpoint", "", "keep the state in folder `DIR`, and go on from what is there")
	addChoice(c, &g.exchange, "exchange", exchangeHelp, exchanges...)
	addCount(c, &g.every, "every", "", 10, 1, "steps between checkpoints")
	addForce(c, &g.force)
	addReport(c, &g.report)
	return c
}

// check refuses flags that are wrong, and returns the options of the product.
func (g *propagation) check() (spmm.Options, error) {
	if g.restart < 0 || g.restart > 1 {
		return spmm.Options{}, fmt.Errorf("--restart %g: want a number from 0 to 1", g.restart)
	}
	j := &job{mode: g.mode, p: g.p, pGiven: g.pGiven}
	o, err := j.sums(spmm.Options{Format: g.format, Precision: dtype.F32, Cols: g.cols})
	if err == nil {
		err = o.Validate()
	}
	return o, err
}

// startName is where X0 comes from.
func (g *propagation) startName() string {
	if g.xFile != "" {
		return g.xFile
	}
	return g.start
}
