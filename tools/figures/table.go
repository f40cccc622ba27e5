// Tables of times, of ratios and of asked times.

package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spmmrun/spmm/internal/benchmark"
)

// table is one of bench/figures.json.
type table struct {
	Name string `json:"name"`
	// Kind is times, ratios (how many times as fast as the fastest peer), asked (asked times over measured ones), summary
	// (a row for each of Lines, with ratios), products (a row for each product of Lines, with times), over (times over
	// those with the value Base of the dimension Across) or numbers (those of an example, by Rows and Values).
	Kind    string   `json:"kind"`
	Reports []string `json:"reports"`
	filter
	Across  string `json:"across"`  // times, over: the dimension that has columns, of times N if empty
	Base    string `json:"base"`    // over
	Kernels bool   `json:"kernels"` // times: say which format was taken
	Shares  bool   `json:"shares"`  // times: say which share of attainable was reached
	Lines   []line `json:"lines"`   // summary
	numbers
}

// filter takes results. What is empty takes all.
type filter struct {
	Matrix    string `json:"matrix"` // a regular expression of the matrix's name
	By        string `json:"by"`     // a regular expression of Case.By and the precision
	Precision string `json:"precision"`
	Columns   []int  `json:"columns"` // of B
	Peers     string `json:"peers"`   // of a line: a regular expression of Case.By of the peers that count
}

// line is one of a summary.
type line struct {
	Label   string   `json:"label"`
	Reports []string `json:"reports"`
	Others  string   `json:"others"` // who the peers are
	filter
}

// takes returns a function that says whether a result is taken.
func (f filter) takes() (func(c benchmark.Case) bool, error) {
	matrix, err := regexp.Compile(f.Matrix)
	if err != nil {
		return nil, err
	}
	by, err := regexp.Compile(f.By)
	if err != nil {
		return nil, err
	}
	return func(c benchmark.Case) bool {
		return matrix.MatchString(c.Matrix) && by.MatchString(c.By()) &&
			(f.Precision == "" || c.Precision == f.Precision) && (len(f.Columns) == 0 || slices.Contains(f.Columns, c.N))
	}, nil
}

// against returns the report without peers that do not count.
func (f filter) against(r *benchmark.Report) (*benchmark.Report, error) {
	peers, err := regexp.Compile(f.Peers)
	if err != nil {
		return nil, err
	}
	some := *r
	some.Results = slices.DeleteFunc(slices.Clone(r.Results), func(x benchmark.Result) bool {
		return x.Chosen == "" && !peers.MatchString(x.By())
	})
	return &some, nil
}

// markdown is the table with where it comes from behind it.
func (t table) markdown(rs reports) (string, error) {
	switch t.Kind {
	case "summary", "products":
		rows, err := t.lines(rs)
		return text(rows), err
	case "numbers":
		return t.numbers.markdown(rs, t.Reports)
	}
	r, err := rs.merged(t.Reports)
	if err != nil {
		return "", err
	}
	takes, err := t.takes()
	if err != nil {
		return "", err
	}
	var rows [][]string
	switch t.Kind {
	case "times":
		rows, err = t.times(r, takes)
	case "asked":
		rows = asked(r, takes)
	case "ratios":
		rows = ratios(ours(r, takes))
	case "over":
		rows, err = t.over(r, takes)
	default:
		err = fmt.Errorf("kind %q: want times, ratios, asked, over, summary, products or numbers", t.Kind)
	}
	if err == nil && len(rows) < 2 {
		err = fmt.Errorf("no result is taken")
	}
	if err != nil {
		return "", err
	}
	out := text(rows)
	for _, name := range t.Reports {
		r, err := rs.read(name)
		if err != nil {
			return "", err
		}
		out += "\n" + origin(name, &r.Environment)
	}
	return out, nil
}

// text is a table in Markdown. The first row is its head.
func text(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|%s\n", strings.Repeat(" --- |", len(row)))
		}
	}
	return b.String()
}

// dimension is one that results of a table may differ in.
type dimension struct {
	name string
	of   func(x *benchmark.Result) string
}

// dimensions in the order of a table's first columns.
var dimensions = []dimension{
	{"", func(x *benchmark.Result) string { return label(x.Matrix) }},
	{"device", func(x *benchmark.Result) string { return x.Backend }},
	{"format", func(x *benchmark.Result) string { return x.Format }},
	{"mode", func(x *benchmark.Result) string { return x.Mode }},
	{"way", func(x *benchmark.Result) string { return x.Way }},
	{"precision", func(x *benchmark.Result) string { return x.Precision }},
	{"N", func(x *benchmark.Result) string { return "N=" + strconv.Itoa(x.N) }},
}

// times has a column for each value of one dimension, and rows for those of the others. Behind each time is the fastest
// peer's, in brackets.
func (t table) times(r *benchmark.Report, takes func(benchmark.Case) bool) ([][]string, error) {
	across := slices.IndexFunc(dimensions, func(d dimension) bool { return d.name == cmp.Or(t.Across, "N") })
	if across < 0 {
		return nil, fmt.Errorf("across %q: no such dimension", t.Across)
	}
	var results []*benchmark.Result
	values := make([][]string, len(dimensions))
	for i := range r.Results {
		x := &r.Results[i]
		if !x.Measured() || x.Chosen == "" || !takes(x.Case) {
			continue
		}
		results = append(results, x)
		for k, d := range dimensions {
			if v := d.of(x); !slices.Contains(values[k], v) {
				values[k] = append(values[k], v)
			}
		}
	}
	if len(results) == 0 {
		return nil, nil
	}
	columns := slices.DeleteFunc(
		[]int{0, 1, 2, 3, 4, 5, 6}, func(k int) bool { return k == across || k > 0 && len(values[k]) == 1 },
	)
	head := []string{"µs"}
	for _, k := range columns[1:] {
		head = append(head, dimensions[k].name)
	}
	names := values[across]
	if dimensions[across].name == "N" {
		slices.SortFunc(names, func(x, y string) int { return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) })
	}
	rows := [][]string{slices.Concat(head, names)}
	at := map[string]int{}
	for _, x := range results {
		var row []string
		for _, k := range columns {
			row = append(row, dimensions[k].of(x))
		}
		key := strings.Join(row, "|")
		if at[key] == 0 {
			at[key], rows = len(rows), append(rows, append(row, make([]string, len(names))...))
		}
		rows[at[key]][len(columns)+slices.Index(names, dimensions[across].of(x))] = t.cell(r, x)
	}
	return rows, nil
}

// cell is a time, in bold where the fastest peer is faster, the format if that is wanted, the fastest peer's time, and
// the share of attainable if that is wanted.
func (t table) cell(r *benchmark.Report, x *benchmark.Result) string {
	out := number(x.Median)
	peer := r.FastestPeer(x)
	if peer != nil && peer.Median < x.Median {
		out = "**" + out + "**"
	}
	if t.Kernels {
		out += " " + x.Chosen
	}
	if peer != nil {
		out += " (" + number(peer.Median) + ")"
	}
	if share := x.Attained(); t.Shares && share > 0 {
		out += fmt.Sprintf(", %.0f %%", 100*share)
	}
	return out
}

// asked has a row for each result that a time was asked of.
func asked(r *benchmark.Report, takes func(benchmark.Case) bool) [][]string {
	rows := [][]string{{"matrix", "N", "device, format", "target µs", "measured µs", "target / measured"}}
	for i := range r.Results {
		if x := &r.Results[i]; x.Measured() && x.AskedUS > 0 && takes(x.Case) {
			share := fmt.Sprintf("%.2f", x.AskedUS/x.Median)
			if x.Median > x.AskedUS {
				share = "**" + share + "**"
			}
			rows = append(
				rows,
				[]string{label(x.Matrix), strconv.Itoa(x.N), x.By(), number(x.AskedUS), number(x.Median), share},
			)
		}
	}
	return rows
}

// ours compares the results that are taken, and what was kept, with the fastest peers.
func ours(r *benchmark.Report, takes func(benchmark.Case) bool) []benchmark.Versus {
	some := *r
	some.Results = slices.DeleteFunc(slices.Clone(r.Results), func(x benchmark.Result) bool {
		return x.Chosen != "" && !takes(x.Case)
	})
	return some.Versus()
}

func ratios(all []benchmark.Versus) [][]string {
	rows := [][]string{{"device, format, type", "N", "products", "times as fast (geometric mean)", "least", "for matrix",
		"peer"}}
	for _, b := range all {
		rows = append(rows, []string{
			b.By, strconv.Itoa(b.N), strconv.Itoa(b.Products), ratio(b.Mean),
			ratio(b.Least), label(b.LeastAt), b.LeastPeer,
		})
	}
	return rows
}

// lines has the rows of each line.
func (t table) lines(rs reports) ([][]string, error) {
	rows := [][]string{{"A", "compared with", "columns of B", "times as fast (geometric mean)", "least"}}
	of := summarised
	if t.Kind == "products" {
		rows = [][]string{{"A", "type", "columns of B", "spmm", "other", "the fastest other", "times faster"}}
		of = products
	}
	for _, l := range t.Lines {
		r, err := rs.merged(l.Reports)
		if err != nil {
			return nil, err
		}
		takes, err := l.takes()
		if err != nil {
			return nil, err
		}
		if r, err = l.against(r); err != nil {
			return nil, err
		}
		more := of(l, r, takes)
		if len(more) == 0 {
			return nil, fmt.Errorf("line %q: no result is taken", l.Label)
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// summarised is one row: how many times as fast as the fastest peer, by columns of B.
func summarised(l line, r *benchmark.Report, takes func(benchmark.Case) bool) [][]string {
	all := slices.DeleteFunc(ours(r, takes), func(b benchmark.Versus) bool {
		return len(l.Columns) > 0 && !slices.Contains(l.Columns, b.N) ||
			l.Precision != "" && !strings.HasSuffix(b.By, " "+l.Precision)
	})
	if len(all) == 0 {
		return nil
	}
	var columns, means []string
	for _, b := range all {
		columns, means = append(columns, strconv.Itoa(b.N)), append(means, ratio(b.Mean))
	}
	least := slices.MinFunc(all, func(x, y benchmark.Versus) int { return cmp.Compare(x.Least, y.Least) })
	return [][]string{{l.Label, l.Others, strings.Join(columns, ", "), strings.Join(means, ", "), ratio(least.Least)}}
}

// products has a row for each product: our time and the fastest peer's.
func products(l line, r *benchmark.Report, takes func(benchmark.Case) bool) [][]string {
	var rows [][]string
	for i := range r.Results {
		x := &r.Results[i]
		if !x.Measured() || x.Chosen == "" || !takes(x.Case) {
			continue
		}
		if peer := r.FastestPeer(x); peer != nil {
			rows = append(rows, []string{
				l.Label, x.Precision, strconv.Itoa(x.N), number(x.Median), number(peer.Median), l.Others,
				fmt.Sprintf("%.1f", peer.Median/x.Median),
			})
		}
	}
	return rows
}

// number prints microseconds with three digits or more.
func number(us float64) string {
	if us >= 100 {
		return fmt.Sprintf("%.0f", us)
	}
	return fmt.Sprintf("%.3g", us)
}

func ratio(x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", x)
}
