// Work on the host that cancelling ends at once.

package work

import "context"

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
	go func() {
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
