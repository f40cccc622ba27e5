// Flags that say what they take.

package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// choice is a flag that takes one of some words.
type choice struct {
	word  *string
	valid []string
}

// addChoice adds such a flag, its default first in valid, with completion.
func addChoice(c *cobra.Command, p *string, name, usage string, valid ...string) {
	*p = valid[0]
	c.Flags().Var(choice{p, valid}, name, usage)
	complete(c, name, valid)
}

// complete has shells complete a flag's words.
func complete(c *cobra.Command, name string, words []string) {
	if err := c.RegisterFlagCompletionFunc(name,
		cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // a programming error
	}
}

func (c choice) String() string { return *c.word }
func (c choice) Type() string   { return strings.Join(c.valid, "|") }
func (c choice) Set(s string) error {
	if !slices.Contains(c.valid, s) {
		return fmt.Errorf("want %s", orList(c.valid))
	}
	*c.word = s
	return nil
}

// orList is "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// deviceName is a flag that takes auto, a backend, or a backend with an index.
type deviceName struct{ name *string }

func (d deviceName) String() string { return *d.name }
func (d deviceName) Type() string   { return strings.Join(backendNames(), "|") + "[:INDEX]" }
func (d deviceName) Set(s string) error {
	name, index, indexed := strings.Cut(s, ":")
	if !slices.Contains(backendNames(), name) {
		return fmt.Errorf("want %s, or a backend with the index that `spmmrun devices` lists, as in vulkan:1", orList(backendNames()))
	}
	if indexed && name == "auto" {
		return errors.New("auto takes no index")
	}
	if n, err := strconv.Atoi(index); indexed && (err != nil || n < 0) {
		return fmt.Errorf("want %s:INDEX as `spmmrun devices` lists it", name)
	}
	*d.name = s
	return nil
}

// addBackend adds --backend, a deviceName or deviceNames, with completion.
func addBackend(c *cobra.Command, name pflag.Value, usage string) {
	c.Flags().Var(name, "backend", usage)
	complete(c, "backend", backendNames())
}

// backendNames lists auto and this build's backends.
func backendNames() []string {
	names := []string{"auto"}
	for _, d := range backend.Drivers() {
		names = append(names, d.Name())
	}
	return names
}

// count is a flag that takes a whole number from least to 2³¹-1.
type count struct {
	n     *int
	least int
}

func (c count) String() string { return strconv.Itoa(*c.n) }
func (c count) Type() string   { return "N" }
func (c count) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || int(n) < c.least {
		return fmt.Errorf("want a whole number from %d to %d", c.least, math.MaxInt32)
	}
	*c.n = int(n)
	return nil
}

func addCount(c *cobra.Command, p *int, name, short string, value, least int, usage string) {
	*p = value
	c.Flags().VarP(count{p, least}, name, short, usage)
}

// number is a flag that takes a finite number.
type number[F oracle.Number] struct{ x *F }

func (n number[F]) String() string { return strconv.FormatFloat(float64(*n.x), 'g', -1, n.bits()) }
func (n number[F]) Type() string   { return "X" }
func (n number[F]) bits() int      { return 8 * formats.TypeOf[F]().Size() }
func (n number[F]) Set(s string) error {
	x, err := strconv.ParseFloat(s, n.bits())
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Errorf("want a finite number that float%d can hold", n.bits())
	}
	*n.x = F(x)
	return nil
}

func addNumber[F oracle.Number](c *cobra.Command, p *F, name string, value F, usage string) {
	*p = value
	c.Flags().Var(number[F]{p}, name, usage)
}

// seed is a flag that takes a seed.
type seed struct{ n *uint64 }

func (s seed) String() string { return strconv.FormatUint(*s.n, 10) }
func (s seed) Type() string   { return "N" }
func (s seed) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return errors.New("want a whole number from 0 to 2⁶⁴-1")
	}
	*s.n = n
	return nil
}

// addReport adds --report.
func addReport(c *cobra.Command, p *string) {
	addChoice(c, p, "report", "how to print results", "table", "json")
}

// addPrecision adds --precision.
func addPrecision(c *cobra.Command, p *string) {
	addChoice(c, p, "precision", "what A and B are rounded to and multiplied in; sums are f32, or f64 with f64", "f32", "tf32", "f16", "bf16", "f64")
}

// typeOf is the type that a word of --precision means, Invalid for one that means none.
func typeOf(word string) dtype.Type {
	t, _ := dtype.Parse(word)
	return t
}

// addSeed adds --seed, of A's values and of what else the command makes.
func addSeed(c *cobra.Command, p *uint64, also string) {
	*p = 1
	c.Flags().Var(seed{p}, "seed", "seed of "+also+"A's values where MATRIX has none")
}

// addForce adds --force.
func addForce(c *cobra.Command, p *bool) {
	c.Flags().BoolVar(p, "force", false, "write the result even where that replaces an input")
}

// completeMatrix has shells complete the name of a file, and of no second one.
func completeMatrix(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// oneMatrix wants exactly one argument.
func oneMatrix(c *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return fmt.Errorf("no MATRIX given; see %s --help", c.CommandPath())
	case 1:
		return nil
	}
	return fmt.Errorf("one MATRIX at a time, not %d (%s)", len(args), strings.Join(args, " "))
}
