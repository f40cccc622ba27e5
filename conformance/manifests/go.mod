// A module of its own, so that programs which import the library do not fetch manifests. It has no packages.
module github.com/spmmrun/spmm/conformance/manifests

go 1.26.8
