// What Encode and Validate refuse, and what errors say.

package formatstest

import (
	"strings"
	"testing"

	"github.com/spmmrun/spmm/formats"
)

// Error fails unless err says what it should, or is nil if want is "".
func Error(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil {
		t.Errorf("error %v", err)
	}
	if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

// GoodAndBad returns a matrix of one entry, and one like it whose column is out of range.
func GoodAndBad() (good, bad *formats.CSR[float32]) {
	of := func(col int32) *formats.CSR[float32] {
		return &formats.CSR[float32]{Rows: 1, Cols: 2, RowPtr: []int64{0, 1}, ColIdx: []int32{col}, Val: []float32{1}}
	}
	return of(1), of(2)
}

// Refusal is a matrix, or options, that Encode refuses, and what its error says.
type Refusal[O any] = struct {
	Name    string
	A       *formats.CSR[float32]
	Options O
	Want    string
}

// Refuses checks what Encode refuses.
func Refuses[M, O any](t *testing.T, encode func(*formats.CSR[float32], O) (M, error), refusals []Refusal[O]) {
	for _, r := range refusals {
		t.Run(r.Name, func(t *testing.T) {
			_, err := encode(r.A, r.Options)
			Error(t, err, r.Want)
		})
	}
}

// Damage spoils one thing of a valid matrix. Validate's error then says Want; "": the matrix stays valid.
type Damage[M any] = struct {
	Name  string
	Spoil func(m M)
	Want  string
}

// Finds checks that Validate finds each damage to the matrix that valid makes.
func Finds[M interface{ Validate() error }](t *testing.T, valid func() M, damages []Damage[M]) {
	for _, d := range damages {
		t.Run(d.Name, func(t *testing.T) {
			m := valid()
			Error(t, m.Validate(), "")
			d.Spoil(m)
			Error(t, m.Validate(), d.Want)
		})
	}
}
