// Streams of others, which several devices do not take.

package many

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/tensor"
)

var errStreams = fmt.Errorf("a stream is of one device, and the plan is on several, or its memory is limited: Run multiplies: %w",
	backend.ErrUnsupported)

func (g *Plan) Enqueue(uintptr, float64, tensor.Operand, float64, tensor.Operand, launch.Epilogue) error {
	return errStreams
}

func (g *Plan) Ready(uintptr, float64, tensor.Operand, float64, tensor.Operand, launch.Epilogue) error {
	return errStreams
}

func (g *Plan) EnqueueValues(uintptr, tensor.Operand) error { return errStreams }
