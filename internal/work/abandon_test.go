package work

import (
	"context"
	"errors"
	"testing"
)

// TestAbandon checks that the context's end returns although the work goes on, and that else the work's result does.
func TestAbandon(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	begun, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	go func() {
		<-begun
		cancel()
	}()
	_, err := Abandon(ctx, func() (int, error) {
		close(begun)
		<-end
		return 1, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("work that goes on: %v, want context.Canceled", err)
	}
	_, err = Abandon(ctx, func() (int, error) {
		t.Error("work began after the context's end")
		return 0, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v, want context.Canceled", err)
	}
	for _, ctx := range []context.Context{context.Background(), t.Context()} {
		if got, err := Abandon(ctx, func() (int, error) { return 7, nil }); got != 7 || err != nil {
			t.Errorf("work that ends: %d, %v; want 7", got, err)
		}
	}
}
