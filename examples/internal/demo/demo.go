// Package demo has what the examples have in common besides what they show: how they begin and end.
package demo

import (
	"context"
	"errors"
	"flag"
	"io"
	"log"
	"os"
)

// Main runs a program with the arguments of its command line.
func Main(run func(ctx context.Context, args []string, out io.Writer) error) {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		log.Fatal(err)
	}
}

// Flags returns the flags of a program, which has -device.
func Flags(name string) (flags *flag.FlagSet, device *string) {
	flags = flag.NewFlagSet(name, flag.ContinueOnError)
	return flags, flags.String("device", "auto", "`device`: auto, cpu, cuda, vulkan:1 and so on")
}
