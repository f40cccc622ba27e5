// Device models against the times of bench choice that are in bench/results.

package benchmark

import (
	"cmp"
	"os"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/internal/model"
)

// predictedResult is a measurement, and what the device model predicts now.
type predictedResult struct {
	*measurement
	us float64
}

// TestMeasuredChoices holds what a device model predicts to be the fastest against what was, for generated matrices. A
// change of a model that spoils choices shows here.
func TestMeasuredChoices(t *testing.T) {
	for _, x := range []struct {
		file        string
		products    int
		mean, worst float64 // of the time of the kernel that is chosen, over the fastest's, at most
	}{
		{"h200-choice-vulkan.json", 42, 1.01, 1.15},
		{"h200-choice.json", 161, 1.015, 1.65},
		{"h200-choice-new.json", 234, 1.03, 1.5},
		{"h200-choice-vulkan-new.json", 132, 1.03, 1.55},
	} {
		t.Run(x.file, func(t *testing.T) {
			var over []float64
			for of, all := range predictedResults(t, "../../bench/results/"+x.file) {
				took := slices.MinFunc(all, func(x, y predictedResult) int { return cmp.Compare(x.us, y.us) })
				best := slices.MinFunc(all, func(x, y predictedResult) int { return cmp.Compare(x.Median, y.Median) })
				ratio := took.Median / best.Median
				if over = append(over, ratio); ratio > x.worst {
					t.Errorf("%s, N=%d, %s: %s takes %.4g µs (%.4g predicted), %s %.4g (%.4g)", of.Matrix, of.N, of.Precision,
						took.Format, took.Median, took.us, best.Format, best.Median, best.us)
				}
			}
			if mean := GeometricMean(over); len(over) != x.products || mean > x.mean {
				t.Errorf("%d choices take %.3f times as long as the fastest kernels, want %d and at most %.3f", len(over), mean,
					x.products, x.mean)
			}
		})
	}
}

// predictedResults returns the results of a report for each product, a case without a format.
func predictedResults(t *testing.T, file string) map[Case][]predictedResult {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := ReadReport(f, file)
	if err != nil {
		t.Fatal(err)
	}
	dev, ms, err := fittable(r)
	if err != nil {
		t.Fatal(err)
	}
	code, err := codeOf(dev.Facts.Code)
	if err != nil {
		t.Fatal(err)
	}
	products := map[Case][]predictedResult{}
	for _, m := range ms {
		v := variant(m, code)
		if v == nil {
			t.Fatalf("%s/%s: no such variant", m.Chosen, m.Variant)
		}
		p := model.Predictor{
			Product: *m.Predicted.Product, Rates: m.rates, Model: model.For(code, dev.Name), Units: dev.Facts.Units,
		}
		_, us := p.Time(m.Chosen, v, *m.Predicted.Stats, m.Predicted.Items)
		of := m.Case
		of.Format = ""
		products[of] = append(products[of], predictedResult{m, micros(us)})
	}
	return products
}
