//go:build !unix

package cache_test

var systemRefusals []refusal
