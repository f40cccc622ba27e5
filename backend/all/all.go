// Package all registers every backend, one file for each. Import it for its effect:
//
//	import _ "github.com/spmmrun/spmm/backend/all"
//
// A backend that this build cannot hold (another operating system, no cgo, CUDA without its tag) is registered
// all the same, and says when it is opened how to build it in. For the size of binaries, or to do without a C compiler,
// import the packages that are needed instead.
package all
