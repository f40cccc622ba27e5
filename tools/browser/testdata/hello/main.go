// Hello writes what it was given, and ends as it is told.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Printf("%q %s\n", os.Args[1:], os.Getenv("SPMM_HELLO"))
	fmt.Fprint(os.Stderr, "höh", "e")
	switch {
	case len(os.Args) > 1 && os.Args[1] == "panic":
		panic("as told")
	case len(os.Args) > 1:
		os.Exit(len(os.Args))
	}
}
