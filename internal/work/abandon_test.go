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
	go func() {
		<-begun
		cancel()
	}()
	dropped := make(chan int, 1)
	_, err := Abandon(ctx, func() (int, error) {
		close(begun)
		<-end
		return 1, nil
	}, func(v int) { dropped <- v })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("work that goes on: %v, want context.Canceled", err)
	}
	close(end)
	if v := <-dropped; v != 1 {
		t.Errorf("dropped %d, want the late result, 1", v)
	}
	_, err = Abandon(ctx, func() (int, error) {
		t.Error("work began after the context's end")
		return 0, nil
	}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v, want context.Canceled", err)
	}
	settledWork(t)
	for _, ctx := range []context.Context{context.Background(), t.Context()} {
		if got, err := Abandon(ctx, func() (int, error) { return 7, nil }, nil); got != 7 || err != nil {
			t.Errorf("work that ends: %d, %v; want 7", got, err)
		}
	}
}

// settledWork abandons work, and waits until it has ended.
func settledWork(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ctx, settle := Settled(ctx)
	end, ended := make(chan struct{}), false
	_, err := Abandon(ctx, func() (int, error) {
		cancel()
		<-end
		ended = true
		return 1, nil
	}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("work that goes on: %v, want context.Canceled", err)
	}
	close(end)
	if settle(); !ended {
		t.Error("settled before the work had ended")
	}
}
