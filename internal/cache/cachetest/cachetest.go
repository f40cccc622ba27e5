// Package cachetest keeps what tests measure out of the user's cache folder.
package cachetest

import "os"

// Main runs a package's tests with a cache folder of their own, and exits: a TestMain calls it.
func Main(run func() int) {
	dir, err := os.MkdirTemp("", "spmm")
	if err != nil {
		panic(err)
	}
	os.Setenv("SPMM_CACHE", dir)
	code := run()
	os.RemoveAll(dir)
	os.Exit(code)
}
