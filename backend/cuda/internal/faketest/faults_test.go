//go:build cuda && cgo && linux && (amd64 || arm64)

// A driver whose n-th call fails, for every n: an error, nothing left in the context, no wrong output, and what is done
// next works.

package faketest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend/backendtest"
)

// TestFaults lets each call of the driver fail: with an error of the caller's, for lack of memory, and so that the
// context is lost. Without SPMM_ALL_FAULTS, some of them.
func TestFaults(t *testing.T) {
	play := func(at, code int) []string {
		t.Helper()
		logged := calls(t)
		os.Setenv("FAKE_FAIL_AT", "")
		if at > 0 {
			os.Setenv("FAKE_FAIL_AT", fmt.Sprintf("%d=%d", at, code))
		}
		backendtest.RunFaulty(t, cuda(t), func() bool { return slices.Contains(logged(), "failed") })
		os.Setenv("FAKE_FAIL_AT", "")
		return logged()
	}
	defer os.Unsetenv("FAKE_FAIL_AT")
	whole := play(0, 0)
	// ends counts the contexts that ended. What a lost one held goes with it: the driver refuses to free it.
	// Libraries are of no context.
	ends := func(l []string) int {
		n := 0
		for _, s := range l {
			if strings.HasPrefix(s, "end ") {
				n++
				if s != "end lost=0 blocks=0 events=0 streams=0 graphs=0 libraries=0" &&
					!(strings.HasPrefix(s, "end lost=719 ") && strings.HasSuffix(s, " libraries=0")) {
					t.Errorf("not freed: %q", s)
				}
			}
		}
		return n
	}
	if n := ends(whole); n != 2 {
		t.Fatalf("%d contexts end, want 2", n)
	}
	every := 1
	if os.Getenv("SPMM_ALL_FAULTS") == "" {
		every = 7
	}
	for _, code := range []int{1, 2, 719} {
		for at, done := 1+code%every, false; !done && !t.Failed(); at += every {
			l := play(at, code)
			done = !slices.Contains(l, "failed")
			ends(l)
			if i := slices.Index(l, "failed"); t.Failed() {
				t.Fatalf("call %d, %s, returns %d", at, l[max(0, i-1)], code)
			}
			if l := play(0, 0); ends(l) != 2 {
				t.Fatalf("after call %d has returned %d, contexts are left over: %q", at, code, slices.DeleteFunc(l, func(s string) bool { return !strings.HasPrefix(s, "end") }))
			}
		}
	}
}
