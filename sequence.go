// Multiplications that are started now and awaited later, and sequences of them that run at once.

package spmm

import (
	"context"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/many"
	"github.com/spmmrun/spmm/internal/plan"
)

// Pending is one or more multiplications that were started. Its method may be called from any goroutine, any number of
// times. A Pending that nobody waits for costs nothing once it is done.
type Pending struct{ p backend.Pending }

// Wait returns when the multiplications are done, on several devices those of each. It returns how long they took
// (Timing.Host is the time from Start until they were seen to be done), or why the device failed. Later calls return
// the same. If the context ends first, Wait returns its error; the multiplications go on, and Wait may be called again.
// Close of the device waits for started multiplications; Wait still returns their result after that.
func (p *Pending) Wait(ctx context.Context) (Timing, error) {
	return many.Wait(ctx, p.p)
}

// Start is Run without the wait: it returns when the multiplication is submitted to the device. It refuses what Run
// refuses. Products run in the order in which they were started: Run, Upload, Download and SetValues, of any plan or
// tensor on the device, come after them and see what they have written. A context that ends after Start has returned
// changes nothing. b, c and the plan may be closed at once: their memory is freed when the device is done.
//
// Starting allocates the Pending. With AutoP, which reads B's ranges first, Start waits for those. On several devices
// Start waits as Run does if operands have to be moved.
func (p *Plan) Start(ctx context.Context, alpha float64, b Operand, beta float64, c Operand,
	e ...Epilogue) (*Pending, error) {
	ep, err := epilogue(e)
	if err != nil {
		return nil, err
	}
	x, err := p.p.Start(ctx, alpha, tensorOf(b), beta, tensorOf(c), ep)
	if err != nil {
		return nil, err
	}
	return &Pending{x}, nil
}

// Sequence is a list of multiplications that are recorded once and run many times, with one call and one wait: as a
// CUDA graph, a Vulkan command buffer, or one submission of WebGPU. Each sees what those before it have written, so
// that an output can be an operand of a later one, and each run goes on from what the last one left. Close it to free
// its memory on the device.
//
// The first Run or Start submits launch by launch, as Plan.Run does, which shows how long the launches take. From then
// on a sequence of up to about 50 ms is one submission, and a longer one several. If the context of a Run ends, the
// device still executes what was submitted, two submissions at most, and the contents of the outputs are undefined. A
// repeated Run allocates nothing.
//
// The sequence multiplies with the values that a matrix has at the time (see Plan.SetValues). Once one of its tensors
// or plans is closed, it refuses to run, with an error that says so. Its methods may be called from any goroutine; runs
// follow each other.
//
// On several devices it is a sequence on each. Operands must lie where the plan's split needs them, as TensorsFor
// allocates them: nothing is copied from device to device during a sequence. So the C of one multiplication can be the
// B of the next ByColumns, but not ByRows, where B is on all devices and C is divided by rows.
type Sequence struct{ s many.Recorder }

// NewSequence returns a sequence without multiplications.
func (d *Device) NewSequence() *Sequence {
	if d.d == nil {
		return &Sequence{many.NewSequence(d.all())}
	}
	return &Sequence{plan.NewSequence(d.d)}
}

// Add appends c = alpha·A·b + beta·c, with an epilogue if one is given, where A is p's matrix. Plans and tensors are
// all on the sequence's device. It refuses what p.Run refuses, and plans with AutoP, which find their precision anew
// for each B: prepare the matrix with a fixed P for a sequence. After an error the sequence is unchanged. The operands
// stay the caller's, and must stay open as long as the sequence is to run. Add may be called between runs.
func (s *Sequence) Add(p *Plan, alpha float64, b Operand, beta float64, c Operand, e ...Epilogue) error {
	ep, err := epilogue(e)
	if err != nil {
		return err
	}
	return s.s.Add(p.matrix(), alpha, tensorOf(b), beta, tensorOf(c), ep)
}

// AddValues appends p.SetValues(values). Each run takes the elements that values has at that point, which an earlier
// multiplication of the sequence may have written, and later multiplications use them. It refuses what SetValues
// refuses, plans with AutoP, and in reproducible mode a matrix whose table of slots the device cannot bind. values must
// stay open as long as the sequence is to run. On several devices it is ErrUnsupported.
func (s *Sequence) AddValues(p *Plan, values Operand) error {
	return s.s.AddValues(p.matrix(), tensorOf(values))
}

// AddSample appends p.Sample(x, y, out). It refuses what Sample refuses, and an x or y that is column-major, of another
// type than the plan's precision, or memory of others that does not suit the kernel. The tensors must stay open as long
// as the sequence is to run. On several devices it is ErrUnsupported.
func (s *Sequence) AddSample(p *Plan, x, y, out Operand, e ...SampleEpilogue) error {
	q, err := sampled(x, y, out, e)
	if err != nil {
		return err
	}
	return s.s.AddSample(p.matrix(), q)
}

// Run runs the multiplications in the order in which they were added. After an error, such as that of a cancelled
// context, the contents of their outputs are undefined.
func (s *Sequence) Run(ctx context.Context) (Timing, error) {
	return s.s.Run(ctx)
}

// Start is Run without the wait, under the rules of Plan.Start. Where a device runs a sequence once at a time, a Start
// that follows one waits for it.
func (s *Sequence) Start(ctx context.Context) (*Pending, error) {
	x, err := s.s.Start(ctx)
	if err != nil {
		return nil, err
	}
	return &Pending{x}, nil
}

// Close frees what the sequence holds on the device, when it is not running; the plans and tensors stay. A second call
// does nothing.
func (s *Sequence) Close() error { return s.s.Close() }
