// The program on every device present, in small.

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
)

func TestRun(t *testing.T) {
	infos, _ := spmm.Devices(context.Background())
	for _, info := range infos {
		device := fmt.Sprintf("%s:%d", info.Backend, info.Index)
		t.Run(device, func(t *testing.T) {
			var out strings.Builder
			err := run(context.Background(), []string{"-device", device, "-width", "96", "-inner", "201", "-heads", "4", "-tokens", "1,19", "-zeros", "0.5,0.9", "-runs", "2"}, &out)
			t.Log(out.String())
			if err != nil || !strings.Contains(out.String(), "checked  outputs of each") {
				t.Errorf("error %v", err)
			}
		})
	}
}
