//go:build !linux

// Systems on which every file has a name.

package main

import (
	"errors"
	"os"
)

func unnamed(string) (*os.File, error) { return nil, errors.ErrUnsupported }
func link(*os.File, string) error      { return errors.ErrUnsupported }
