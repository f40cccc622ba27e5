// The program on every device present, with few features.

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
			err := run(context.Background(), []string{"-device", device, "-graph", "../../testdata/matrices/ca-CondMat.mtx.gz", "-features", "20", "-hidden", "9", "-classes", "5"}, &out)
			t.Log(out.String())
			if err != nil || !strings.Contains(out.String(), "checked  all 115665 outputs") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-hidden 0", "0 hidden units"},
		{"-graph gen:uniform,rows=3,cols=4", "a matrix of 3×4"},
		{"-graph nowhere.mtx", "nowhere.mtx"},
	} {
		if err := run(context.Background(), append(strings.Fields(c.args), "-device", "cpu"), new(strings.Builder)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.args, err)
		}
	}
}
