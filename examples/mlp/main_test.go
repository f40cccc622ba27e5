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
			err := run(context.Background(), []string{"-device", device, "-inputs", "130", "-hidden", "201", "-outputs", "37", "-batch", "19"}, &out)
			t.Log(out.String())
			if err != nil || !strings.Contains(out.String(), "checked  all 703 outputs") {
				t.Errorf("error %v", err)
			}
		})
	}
}
