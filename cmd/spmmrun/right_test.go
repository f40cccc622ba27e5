// --right gives the same C, whatever else is asked for.

package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
)

func TestRightFlag(t *testing.T) {
	digest := regexp.MustCompile(`output +sha256 [0-9a-f]{64}`)
	run := func(args string) (string, error) {
		var out bytes.Buffer
		fields := strings.Fields("--backend cpu --repeats 1 --warmup 0 " + args)
		err := execute(context.Background(), fields, &out, &bytes.Buffer{}, new(temporaries))
		return out.String(), err
	}
	const a = " gen:uniform,rows=100,cols=60,density=0.3"
	for _, args := range []string{
		"--format csr -n 7 --verify full" + a,
		"--format csr -n 7 --transpose --alpha 2 --beta 0.5 --activation relu" + a,
		"--format dense --precision f16 -n 9" + a,
		"--mode reproducible -n 5 --verify full" + a,
		"--precision f16 -n 3 --quantise int8" + a,
	} {
		plain, err := run(args)
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		right, err := run("--right " + args)
		if err != nil || !strings.Contains(right, "on the right of Bᵀ: ") {
			t.Fatalf("--right %s: %v\n%s", args, err, right)
		}
		if x, y := digest.FindString(plain), digest.FindString(right); x == "" || x != y {
			t.Errorf("%s: %s, with --right %s", args, x, y)
		}
	}
	for args, want := range map[string]string{
		"--bias bias.npy": "--right is not for --bias", "--memory 1G": "--right is for one device",
	} {
		if _, err := run("--right " + args + a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--right %s: %v, want an error with %q", args, err, want)
		}
	}
}
