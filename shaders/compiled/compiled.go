// Package compiled holds what tools/shadergen makes of the kernels' tables and sources: for each kernel an archive of the
// code that its sources are compiled to, PTX and SPIR-V, and a lock that records what each was made from. A test of package
// shaders finds what is stale.
//
// Builds for js embed none of the code: a browser's devices take WGSL, which is composed from source.
package compiled
