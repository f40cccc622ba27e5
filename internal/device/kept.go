// What is kept in the user's cache folder: one file for each thing measured on a device.

package device

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/cache"
)

// Key names a device and its driver in file names.
func Key(i backend.Info) string {
	id := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", i.Name, i.Driver, i.Kind))
	return fmt.Sprintf("%s-%x", i.Backend, id[:6])
}

// ReadJSON reads a file of the cache folder into v, and tells whether there was one.
func ReadJSON(name string, v any) bool {
	const limit = 1 << 20
	b, err := cache.Read(name, limit)
	return err == nil && json.Unmarshal(b, v) == nil
}

// SaveJSON leaves either the old file or the whole new one. It makes the folders on the way.
func SaveJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return cache.Write(name, append(b, '\n'))
}
