// The user's cache folder: what has been measured on a device, one file a thing.

package plan

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spmmrun/spmm/backend"
)

// cacheFolder returns the folder, "" if there is none. SPMM_CACHE names another one than the user's.
func cacheFolder() string {
	if dir := os.Getenv("SPMM_CACHE"); dir != "" {
		return dir
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(user, "spmm")
}

// deviceKey names a device and its driver in file names.
func deviceKey(i backend.Info) string {
	id := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", i.Name, i.Driver, i.Kind))
	return fmt.Sprintf("%s-%x", i.Backend, id[:6])
}

// saveJSON leaves either the old file or the whole new one. It makes the folders on the way.
func saveJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(b, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
