// Multiplications that are started now and awaited later, and sequences of them that run at once.

package spmm

import (
	"context"

	"github.com/spmmrun/spmm/internal/many"
)

// Pending is multiplications that were started. On several devices Wait waits for each. Its method may be called from
// any goroutine, any number of times. One that nobody waits for costs nothing once it is done.
type Pending struct{ p many.Pending }

// Wait returns when the multiplications are done: how long they took, Timing.Host from Start until they were seen to be
// done, or why the device failed. Later calls return the same. When the context ends first, Wait returns its error;
// the multiplications go on, and Wait may be called again. After Close of the device, which waits for what was started,
// Wait still says what became of it.
func (p *Pending) Wait(ctx context.Context) (Timing, error) {
	t, err := p.p.Wait(ctx)
	return Timing(t), err
}

// Start is Run without the wait: it returns when the multiplication is submitted to the device, and the caller goes on,
// preparing the next matrix, say. It refuses what Run refuses. What is started first runs first: Run, Upload, Download
// and SetValues, of any plan or tensor on the device, come after what was started before them, and see what it has
// written. A context that ends after Start has returned changes nothing. b, c and the plan may be closed at once: their
// memory is freed when the device is done. With AutoP, which reads B's ranges first, Start waits for those. Starting
// allocates the Pending. On several devices, what would have to move is waited for: Start is Run then.
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

// Sequence is multiplications that are recorded once and run many times, with one call and one wait: as a CUDA graph, a
// Vulkan command buffer, one submission of WebGPU. Each sees what those before it have written, so that outputs feed
// later ones, and the next run goes on from what the last one left. Close it to free what it holds on the device.
//
// The first Run or Start goes launch by launch, as Plan.Run does, which shows how long the launches take. From then on
// a sequence that takes up to some 50 ms is one submission, and a longer one several: when the context of a Run ends,
// the device still does what was submitted, two of them at most, and what the multiplications write is undefined. A
// repeated Run allocates nothing.
//
// The sequence multiplies with the values that a matrix has at the time (see Plan.SetValues). Once a tensor or a plan
// that it uses is closed it refuses to run, with an error that says so. Its methods may be called from any goroutine;
// runs follow each other.
//
// On several devices it is a sequence on each. Operands lie where the plan's split needs them, as those that TensorsFor
// makes: nothing is copied from device to device during a sequence. So ByColumns the C of one multiplication can be the
// B of the next, and ByRows, where B is on all devices and C in rows, it cannot.
type Sequence struct{ s many.Recorder }

// NewSequence returns a sequence without multiplications.
func (d *Device) NewSequence() *Sequence {
	if d.d == nil {
		return &Sequence{many.NewSequence(d.all())}
	}
	return &Sequence{many.NewRecorder(d.d)}
}

// Add appends c = alpha·A·b + beta·c, with an epilogue if one is given, where A is p's matrix; plans and tensors are
// all on the sequence's device. It refuses what p.Run refuses, and plans with AutoP, which find their precision anew
// for each B: prepare the matrix with a fixed P for a sequence. After an error the sequence is as it was. The operands
// stay the caller's, and must stay open as long as the sequence is to run. It may be called between runs, too.
func (s *Sequence) Add(p *Plan, alpha float64, b Operand, beta float64, c Operand, e ...Epilogue) error {
	ep, err := epilogue(e)
	if err != nil {
		return err
	}
	return s.s.Add(p.matrix(), alpha, tensorOf(b), beta, tensorOf(c), ep)
}

// AddValues appends p.SetValues(values): each run takes the elements that values has then, which a multiplication
// before it may have written, and the multiplications behind it use them. It refuses what SetValues refuses, plans with
// AutoP, and in reproducible mode a matrix for which the device cannot bind the table of places. values must stay open
// as long as the sequence is to run. On several devices it is ErrUnsupported.
func (s *Sequence) AddValues(p *Plan, values Operand) error {
	return s.s.AddValues(p.matrix(), tensorOf(values))
}

// Run runs the multiplications in the order in which they were added. After an error, which a cancelled context is
// too, the contents of what they write are undefined.
func (s *Sequence) Run(ctx context.Context) (Timing, error) {
	t, err := s.s.Run(ctx)
	return Timing(t), err
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
