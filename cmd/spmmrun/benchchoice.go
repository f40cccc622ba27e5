// spmmrun bench choice: does auto take the fastest kernel?

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/spmmrun/spmm/internal/benchmark"
)

// benchChoice has what the command line asks for.
type benchChoice struct {
	benchJob
	count, products int
	drawn           uint64
	tuned           bool
}

func newBenchChoice(unfinished *temporaries) *cobra.Command {
	j := &benchChoice{benchJob: benchJob{
		formats: benchmark.Rivals, modes: benchmark.Fast, p: precisions[0], seed: 1,
		benchOutput: benchOutput{unfinished: unfinished},
	}}
	c := &cobra.Command{
		Use:   "choice [flags]",
		Short: "Measure how far the kernel that auto takes is from the fastest, on generated matrices",
		Long: `choice multiplies with generated matrices of 12 kinds, to which no device model is fitted: by auto, and by
each kernel that is predicted to take at most four times as long as the fastest. Others are not packed, nor are formats
whose slots would be nearly all empty. It prints auto's time over the fastest kernel's, as geometric mean and at worst,
and the ten worst with the predicted times that led to them. Set SPMM_CACHE to an empty folder, so that auto predicts
and does not remember.

With --tune, auto measures the kernels that are predicted to take at most three times as long as the fastest, as run
does with that flag, and takes the fastest of them.

--products K draws K of all products, by --seed, and measures those of a matrix in a row. An interrupt prints what is
known by then. --save keeps all times, from which spmmrun bench fit makes a device model.` + taskCodes,
		Example: `  spmmrun bench choice --backend cuda --products 200 --limit 20ms --report json`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			j.given = c.Flags().Changed
			return j.run(c.Context(), c.OutOrStdout(), newProgress(c.ErrOrStderr()))
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&j.backends, "backend", "auto", "devices, a list as in cpu,cuda:1; all is one of each backend")
	f.StringVarP(&j.cols, "cols", "n", "1,8,32,128,512,2048", "columns of B, a list")
	f.StringVar(&j.precisions, "precision", "f32,tf32,f16,f64", "precisions, a list of f32, tf32, f16, bf16 and f64")
	addCount(c, &j.count, "matrices", "", 200, 1, "matrices, of the kinds in turn")
	addCount(c, &j.products, "products", "", 0, 0, "products to draw of all; 0: all")
	f.Uint64Var(&j.drawn, "seed", 1, "of the matrices and of what is drawn")
	f.BoolVar(&j.tuned, "tune", false, "auto measures before it chooses")
	j.benchTurns.add(c)
	j.limit = 100 * time.Millisecond
	f.Lookup("limit").DefValue = j.limit.String()
	addChoice(c, &j.report, "report", "how to print the choices", "table", "json")
	addSave(c, &j.save)
	addForce(c, &j.force)
	return c
}

func (j *benchChoice) run(ctx context.Context, stdout io.Writer, p *progress) error {
	defer p.end()
	j.matrices = benchmark.ChoiceMatrices(j.count, j.drawn)
	s, err := j.sweep(ctx, p)
	if err != nil {
		return err
	}
	of := s.Products[0]
	s.Products = benchmark.ChoiceProducts(of, j.tuned, j.products, j.drawn)
	s.Facts = true
	verifySample(s, sampleProducts/50) // wrong answers are for conform to find
	if err := j.begin(); err != nil {
		return err
	}
	r, failed := j.measured(ctx, s, p)
	if len(r.Results) == 0 && failed != nil {
		return failed
	}
	choices := benchmark.NewChoices(r)
	if choices.Products == 0 {
		return errors.Join(failed, fmt.Errorf("--products %d: no choice was measured", j.products))
	}
	print := choices.Print
	if j.report == "json" {
		print = choices.Write
	}
	if err := print(stdout); err != nil {
		return errors.Join(failed, err)
	}
	if err := j.saved.write(r.Write); err != nil {
		return errors.Join(failed, fmt.Errorf("--save: %w", err))
	}
	return errors.Join(failed, right(r))
}
