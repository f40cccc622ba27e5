//go:build race

package spmm_test

func init() { raced = true }
