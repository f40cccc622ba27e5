// Work on the host that cancelling ends at once.

package work

import (
	"context"
	"sync"
)

type settled struct{} // the key of a context's value

// Settled returns a context, and a function that waits until all that is abandoned in it has ended: until then it may
// read a matrix whose memory is not Go's.
func Settled(ctx context.Context) (context.Context, func()) {
	running := &sync.WaitGroup{}
	return context.WithValue(ctx, settled{}, running), running.Wait
}

// Abandon returns what f does, or, as soon as the context ends, the context's error. Then f still reads the matrix for
// a while. Its result is given to drop, if that is not nil.
func Abandon[T any](ctx context.Context, f func() (T, error), drop func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	switch {
	case ctx.Err() != nil:
		return none, ctx.Err()
	case ctx.Done() == nil:
		return f()
	}
	done := make(chan result, 1)
	running, ok := ctx.Value(settled{}).(*sync.WaitGroup)
	if !ok {
		running = &sync.WaitGroup{}
	}
	running.Add(1)
	go func() {
		defer running.Done()
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		if drop != nil {
			go func() {
				if r := <-done; r.err == nil {
					drop(r.value)
				}
			}()
		}
		return none, ctx.Err()
	}
}
