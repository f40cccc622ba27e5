// What reproducible mode costs beside fast mode.

package main

import (
	"fmt"
	"regexp"
	"strings"
)

// reproducible multiplies pruned weights, element-wise and in vectors of 8 rows, as when a model reads a prompt
// (4096², many columns) and when it writes an answer (28672×8192, few). The ratios are to fast mode as spmmrun picks
// it.
func reproducible(r *runner) error {
	only, err := regexp.Compile(r.only)
	if err != nil {
		return err
	}
	sizes := []struct {
		rows, cols int
		n          []int
	}{{4096, 4096, []int{512, 2048}}, {28672, 8192, []int{8, 16, 32}}}
	for _, backend := range strings.Split(r.backends, ",") {
		fmt.Printf("%s, 90 %% zeros, f16, µs\n\n| matrix | N | fast | p = 15 | p = 23 | p = 31 |\n|%s\n", backend, strings.Repeat(" --- |", 6))
		for _, mask := range []string{"vector,v=8", "uniform"} {
			for _, s := range sizes {
				matrix := fmt.Sprintf("gen:%s,rows=%d,cols=%d,density=0.1", mask, s.rows, s.cols)
				for _, n := range s.n {
					if only.MatchString(matrix) {
						r.beside(backend, matrix, n)
					}
				}
			}
		}
		fmt.Println()
	}
	return nil
}

// beside prints the line of a matrix and a number of columns.
func (r *runner) beside(backend, matrix string, n int) {
	args := []string{"--backend", backend, "--precision", "f16", "-n", fmt.Sprint(n), matrix}
	fast, err := r.run(args...)
	row := []string{matrix, fmt.Sprint(n), cell(fast, err)}
	for _, p := range []string{"15", "23", "31"} {
		res, err := r.run(append([]string{"--mode", "reproducible", "--p", p}, args...)...)
		text := cell(res, err)
		if err == nil && fast.Time.Median > 0 {
			text += fmt.Sprintf(", %.1f×", res.Time.Median/fast.Time.Median)
		}
		row = append(row, text)
	}
	fmt.Printf("| %s |\n", strings.Join(row, " | "))
}
