// Package cache is the user's folder for what can be made again: pipelines that a driver compiled, rates
// measured on a device.
package cache

import (
	"errors"
	"os"
	"path/filepath"
)

// Folder returns the folder, which may not exist yet: the one that SPMM_CACHE names, else the user's.
// "" if there is none.
func Folder() string {
	if dir := os.Getenv("SPMM_CACHE"); dir != "" {
		return dir
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(user, "spmm")
}

// Write leaves either the old file or the whole new one, and makes the folders on the way.
func Write(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
