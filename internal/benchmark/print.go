// A report as a table, Markdown or CSV.

package benchmark

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spmmrun/spmm/internal/printable"
)

// product is computed by several, whose times are compared.
type product struct {
	matrix, precision string
	n                 int
}

func (r *Result) product() product { return product{r.Matrix, r.Precision, r.N} }

// best returns the least median of each product.
func (r *Report) best() map[product]float64 {
	best := map[product]float64{}
	for i := range r.Results {
		x := &r.Results[i]
		if b, ok := best[x.product()]; x.Measured() && (!ok || x.Median < b) {
			best[x.product()] = x.Median
		}
	}
	return best
}

// OverBest returns the time of each case over the least that any needs for the product.
func (r *Report) OverBest() map[Case]float64 {
	best, over := r.best(), map[Case]float64{}
	for i := range r.Results {
		if x := &r.Results[i]; x.Measured() {
			over[x.Case] = x.Median / best[x.product()]
		}
	}
	return over
}

// Summary sums up an entrant over the products that it was measured on.
type Summary struct {
	By        string  // backend, format and mode, and the precision
	Products  int     // measured
	OverBest  float64 // geometric mean of its time over the least that any needs
	Fastest   int     // products that it is fastest at
	Attained  float64 // geometric mean of attainable over measured time, 0 if that is not known of all
	WorstOver float64 // the worst time over the best
}

// Summaries returns a summary of each entrant, in the order of the results.
func (r *Report) Summaries() []Summary {
	best := r.best()
	var names []string
	over, attained := map[string][]float64{}, map[string][]float64{}
	for i := range r.Results {
		x := &r.Results[i]
		if !x.Measured() {
			continue
		}
		by := x.By() + " " + x.Precision
		if !slices.Contains(names, by) {
			names = append(names, by)
		}
		over[by] = append(over[by], x.Median/best[x.product()])
		attained[by] = append(attained[by], x.Attained())
	}
	var out []Summary
	for _, by := range names {
		s := Summary{
			By: by, Products: len(over[by]), OverBest: GeometricMean(over[by]), WorstOver: slices.Max(over[by]),
		}
		for _, o := range over[by] {
			if o == 1 {
				s.Fastest++
			}
		}
		if slices.Min(attained[by]) > 0 {
			s.Attained = GeometricMean(attained[by])
		}
		out = append(out, s)
	}
	return out
}

var (
	resultHead = []string{
		"matrix", "N", "precision", "by", "kernel", "µs", "±", "over best", "GFLOP/s", "GB/s", "attained", "bound by",
		"heap objects", "asked µs", "asked / measured", "",
	}
	summaryHead = []string{"by", "products", "fastest", "over best", "worst", "attained"}
)

// rows are the cells of the table of results.
func (r *Report) rows() [][]string {
	best := r.best()
	var out [][]string
	for i := range r.Results {
		x := &r.Results[i]
		row := []string{short(x.Matrix), strconv.Itoa(x.N), x.Precision, x.By()}
		if !x.Measured() {
			out = append(out, append(row, "", "-", "", "", "", "", "", "", "", "", "", brief(x.Error)))
			continue
		}
		note := ""
		if !x.Settled {
			note = "not settled"
		}
		if x.Once {
			note = fmt.Sprintf("over %d times the peers' best: measured once", slowPeer)
		}
		if x.Clamped {
			note = strings.TrimPrefix(note+"; faster than the rates measured before", "; ")
		}
		out = append(out, append(row,
			x.kernel(), number(x.Median), percent(x.spread(), 1), ratio(x.Median, best[x.product()]),
			rate(x.GFLOPS()), rate(x.copied()), percent(x.Attained(), 0), x.bound(),
			x.objects(), asked(x), ratio(x.AskedUS, x.Median), note))
	}
	return out
}

// bound says what bounds the product, and of memory by which measured rate.
func (r *Result) bound() string {
	if r.BoundBy == "memory" && r.ReadGBS > 0 {
		return fmt.Sprintf("memory at %.0f GB/s", r.ReadGBS)
	}
	return r.BoundBy
}

// copied is the rate in GB/s at which bytes go where nothing is multiplied.
func (r *Result) copied() float64 {
	if r.NNZ > 0 || !r.Measured() {
		return 0
	}
	return float64(r.Bytes) / r.Median / 1e3
}

// objects counts those on the heap, nothing where they were not counted.
func (r *Result) objects() string {
	if r.Objects == nil {
		return ""
	}
	return fmt.Sprintf("%.2f", *r.Objects)
}

// asked is the time that was asked for, nothing if none was.
func asked(x *Result) string {
	if x.AskedUS == 0 {
		return ""
	}
	return number(x.AskedUS)
}

// rate prints three digits of a rate, nothing of one that is not known.
func rate(x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf("%.3g", x)
}

// ratio prints one time over another, nothing where the former is not known.
func ratio(x, over float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", x/over)
}

// filled leaves out columns of a table that have nothing but a head.
func filled(table [][]string) [][]string {
	out := make([][]string, len(table))
	for j := range table[0] {
		if !slices.ContainsFunc(table[1:], func(row []string) bool { return row[j] != "" }) {
			continue
		}
		for i, row := range table {
			out[i] = append(out[i], row[j])
		}
	}
	return out
}

func (r *Report) summaryRows() [][]string {
	var out [][]string
	for _, s := range r.Summaries() {
		out = append(out, []string{
			printable.String(s.By), strconv.Itoa(s.Products), strconv.Itoa(s.Fastest), fmt.Sprintf("%.2f", s.OverBest),
			fmt.Sprintf("%.2f", s.WorstOver), percent(s.Attained, 0),
		})
	}
	return out
}

// tables are the results, a summary, and a comparison with the peers, if there are any. The first line of each is
// its head.
func (r *Report) tables() [][][]string {
	var tables [][][]string
	for _, t := range []struct {
		head []string
		rows [][]string
	}{{resultHead, r.rows()}, {summaryHead, r.summaryRows()}, {versusHead, r.versusRows()}} {
		if len(t.rows) > 0 {
			tables = append(tables, filled(append([][]string{t.head}, t.rows...)))
		}
	}
	return tables
}

// Print writes the report for a terminal: the environment, a line for each result, a summary and what there is of
// peers.
func (r *Report) Print(w io.Writer) error {
	var environment [][]string
	for _, l := range r.Environment.lines() {
		environment = append(environment, l[:])
	}
	for i, table := range append([][][]string{environment}, r.tables()...) {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := align(w, table); err != nil {
			return err
		}
	}
	return nil
}

// align writes a table with its columns below each other, and no spaces at the ends of lines.
func align(w io.Writer, table [][]string) error {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range table {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// Markdown writes the same as Print in Markdown, and the commands.
func (r *Report) Markdown(w io.Writer) error {
	for _, l := range r.Environment.lines() {
		fmt.Fprintf(w, "- %s: %s\n", l[0], l[1])
	}
	for _, words := range append([][]string{r.Environment.Command}, r.Environment.Further...) {
		if command := typed(words); command != "" {
			fmt.Fprintf(w, "- command: `%s`\n", command)
		}
	}
	for _, table := range r.tables() {
		fmt.Fprintln(w)
		for i, row := range table {
			for j := range row {
				row[j] = strings.ReplaceAll(row[j], "|", `\|`)
			}
			fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
			if i == 0 {
				fmt.Fprintf(w, "|%s\n", strings.Repeat(" --- |", len(row)))
			}
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

// CSV writes a line for each result, with figures in full.
func (r *Report) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	c.Write([]string{
		"matrix", "rows", "cols", "nnz", "n", "precision", "backend", "format", "mode", "way", "chosen", "variant", "split",
		"median_us", "low_us", "high_us", "samples", "batch", "settled", "once", "attainable_us",
		"clamped", "read_gb_s", "bound_by", "gflops", "bytes",
		"encode_s", "asked_us", "error",
	})
	g := func(x float64) string { // "" for what is not known
		if x == 0 || math.IsInf(x, 0) {
			return ""
		}
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	for i := range r.Results {
		x := &r.Results[i]
		c.Write([]string{
			x.Matrix, strconv.Itoa(x.Rows), strconv.Itoa(x.Cols), strconv.FormatInt(x.NNZ, 10), strconv.Itoa(x.N), x.Precision,
			x.Backend, x.Format, x.Mode, x.Way, x.Chosen, x.Variant, x.Split,
			g(x.Median), g(x.Low), g(x.High), strconv.Itoa(len(x.Samples)), strconv.Itoa(x.Batch),
			strconv.FormatBool(x.Settled), strconv.FormatBool(x.Once),
			g(x.AttainableUS), strconv.FormatBool(x.Clamped), g(x.ReadGBS), x.BoundBy,
			g(x.GFLOPS()), strconv.FormatInt(x.Bytes, 10),
			g(x.EncodeS), g(x.AskedUS), x.Error,
		})
	}
	c.Flush()
	return c.Error()
}

// lines describe the environment: a name and its text each.
func (e *Environment) lines() [][2]string {
	system := []string{printable.String(e.System)}
	if e.Processor != "" {
		system = append(system, printable.String(e.Processor))
	}
	if e.Threads > 0 {
		system = append(system, fmt.Sprintf("%d threads", e.Threads))
	}
	lines := [][2]string{{"program", printable.String(e.Program)}, {"system", strings.Join(system, ", ")}}
	if e.Note != "" {
		lines = append(lines, [2]string{"note", printable.String(e.Note)})
	}
	for _, d := range e.Devices {
		is := fmt.Sprintf("%s: %s (%s)", d.Backend, printable.String(d.Name), printable.String(d.Driver))
		lines = append(lines, [2]string{"device", is})
	}
	for _, p := range e.Peers {
		lines = append(lines, [2]string{"peer", printable.String(p)})
	}
	for _, s := range []struct {
		name string
		State
	}{{"before", e.Before}, {"after", e.After}} {
		var words []string
		if len(s.Load) > 0 {
			words = append(words, fmt.Sprintf("load %.2f", s.Load[0]))
		}
		if s.MHz > 0 {
			words = append(words, fmt.Sprintf("%.0f MHz", s.MHz))
		}
		for _, g := range s.GPUs {
			words = append(words, printable.String(g))
		}
		if len(words) > 0 {
			lines = append(lines, [2]string{s.name, strings.Join(words, ", ")})
		}
	}
	return append(
		lines,
		[2]string{"took", fmt.Sprintf("%.3g s, from %s", e.Seconds, e.Start.UTC().Format("2006-01-02 15:04"))},
	)
}

// typed is a command as it was typed, without folders of files.
func typed(command []string) string {
	var words []string
	for _, w := range command {
		if flag, value, ok := strings.Cut(w, "="); ok && strings.HasPrefix(w, "-") {
			w = printable.String(flag) + "=" + short(value)
		} else {
			w = short(w)
		}
		words = append(words, strings.ReplaceAll(w, "`", "'"))
	}
	return strings.Join(words, " ")
}

// kernel names the format and the kernel that were taken, and a group's split.
func (r *Result) kernel() string {
	if r.Variant == "" {
		return r.Chosen
	}
	kernel := r.Chosen + "/" + cmp.Or(r.Kernel, r.Variant)
	if r.Split != "" {
		kernel += " by " + r.Split
	}
	return kernel
}

// brief is the beginning of an error; JSON and CSV have all of it.
func brief(text string) string {
	const most = 60
	words := []rune(printable.String(text))
	if len(words) > most {
		return string(words[:most-1]) + "…"
	}
	return string(words)
}

// short is a matrix's name without folders.
func short(matrix string) string {
	if strings.HasPrefix(matrix, "gen:") {
		return printable.String(matrix)
	}
	return printable.String(path.Base(matrix))
}

// number prints microseconds with three digits or more.
func number(us float64) string {
	if us >= 100 {
		return fmt.Sprintf("%.0f", us)
	}
	return fmt.Sprintf("%.3g", us)
}

// percent prints a share, nothing where it is not known.
func percent(x float64, digits int) string {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return ""
	}
	return fmt.Sprintf("%.*f %%", digits, 100*x)
}
