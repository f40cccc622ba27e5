// What tuning found, kept in the cache folder: a file for each matrix, device, precision and number of
// columns.

package choose

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/cache"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/work"
)

// record is the measurements of one matrix on one device.
type record struct {
	Version int        `json:"version"`
	Device  string     `json:"device"`
	Driver  string     `json:"driver"`
	Matrix  string     `json:"matrix"` // digest of the pattern
	Among   []string   `json:"among"`  // all candidates that there were
	Times   []Measured `json:"times"`  // the fastest first

	file string // its name in the cache folder
}

// recordVersion changes with what is measured and how, and with kernels whose times change much.
const recordVersion = 1

func newRecord(d *device.Device, w *work.Work, cs []*Candidate, times []Measured) *record {
	slices.SortStableFunc(times, CompareTimes)
	i, digest := d.Info(), patternDigest(w.A.CSR())
	r := &record{Version: recordVersion, Device: i.Name, Driver: i.Driver, Matrix: digest, Among: names(cs), Times: times}
	folder, prefix := recordFile(d, w)
	r.file = folder + "/" + prefix + digest[:shortDigest] + ".json"
	return r
}

// names lists candidates in a fixed order.
func names(cs []*Candidate) []string {
	var s []string
	for _, c := range cs {
		s = append(s, c.name())
	}
	slices.Sort(s)
	return s
}

// shortDigest is how much of a digest serves as a name.
const shortDigest = 16

// recordFile returns the folder and what the file's name starts with: all but the digest, so that it shows whether
// there can be a record without one.
func recordFile(d *device.Device, w *work.Work) (folder, prefix string) {
	rows, cols := w.A.Dims()
	format := w.FormatName()
	if w.A.Kind() != dtype.Invalid {
		format += "-" + w.A.Kind().String()
	}
	return "tuned-" + device.Key(d.Info()), fmt.Sprintf("%s-%v-n%d-%dx%d-%d-", format, w.Precision, w.Cols, rows, cols, w.A.NNZ())
}

// patternDigest identifies a matrix but for its values, on which times do not depend.
func patternDigest(a formats.Sparse) string {
	ptr, idx := a.Pattern()
	rows, cols := a.Dims()
	h := sha256.New()
	binary.Write(h, binary.LittleEndian, []int64{int64(rows), int64(cols)})
	h.Write(backend.Bytes(ptr))
	h.Write(backend.Bytes(idx))
	return fmt.Sprintf("%x", h.Sum(nil))
}

func (r *record) save() error { return device.SaveJSON(r.file, r) }

// recall returns what was measured of a matrix, nil if it was not or by another version.
func recall(d *device.Device, w *work.Work) *record {
	folder, prefix := recordFile(d, w)
	if !slices.ContainsFunc(cache.Names(folder), func(name string) bool { return strings.HasPrefix(name, prefix) }) {
		return nil // without looking at the whole matrix
	}
	digest := patternDigest(w.A.CSR())
	r, i := new(record), d.Info()
	if !device.ReadJSON(folder+"/"+prefix+digest[:shortDigest]+".json", r) || !r.valid() || r.Device != i.Name || r.Driver != i.Driver || r.Matrix != digest {
		return nil
	}
	return r
}

// valid tells whether a record is of this version and says what measurements can: how long some of the candidates took.
func (r *record) valid() bool {
	return r.Version == recordVersion && len(r.Times) > 0 && !slices.ContainsFunc(r.Times, func(m Measured) bool {
		return m.Time <= 0 || m.Time > time.Hour || !slices.Contains(r.Among, m.Format+"/"+m.Variant)
	})
}

// sort brings the fastest candidate to the front. It does nothing and returns false if the candidates
// are not those that there were.
func (r *record) sort(cs []*Candidate) bool {
	if !slices.Equal(r.Among, names(cs)) {
		return false
	}
	i := slices.IndexFunc(cs, func(c *Candidate) bool {
		return c.Kernel.Name == r.Times[0].Format && c.Variant.Name == r.Times[0].Variant
	})
	if i > 0 {
		cs[0], cs[i] = cs[i], cs[0]
	}
	return i >= 0
}
