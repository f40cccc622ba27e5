// C and X on rank 0: their digest, and the file that has them.

package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/npy"
)

// collectTo brings rows of all ranks to rank 0, some at a time. Rank 0 writes them to out if that is a file, and
// returns their SHA-256, and why they could not be written.
func collectTo[S oracle.Number](r *ranks, bounds dist.Bounds, mine *formats.Dense[S], out *output) (digest string,
	unwritten, err error) {
	if r.Rank() != 0 {
		return "", nil, dist.Collect(r, bounds, mine, nil)
	}
	h := sha256.New()
	fill := func(w io.Writer) error {
		array, failed := npy.NewWriter[S](w, bounds.Rows(), mine.Cols)
		err = dist.Collect(r, bounds, mine, func(d *formats.Dense[S]) error { // whatever fails: other ranks wait
			h.Write(backend.Bytes(d.Data[:d.Rows*d.Cols]))
			if failed == nil {
				failed = array.WriteRows(d)
			}
			return nil
		})
		if err := cmp.Or(err, failed); err != nil {
			return err
		}
		return array.Close()
	}
	if out.f == nil {
		unwritten = fill(io.Discard)
	} else {
		unwritten = out.write(fill)
	}
	if err != nil {
		return "", nil, err
	}
	if unwritten != nil {
		unwritten = fmt.Errorf("--out: %w", unwritten)
	}
	return hex.EncodeToString(h.Sum(nil)), unwritten, nil
}
