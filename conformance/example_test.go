package conformance_test

import (
	"context"
	"fmt"
	"regexp"

	"github.com/spmmrun/spmm/backend"
	_ "github.com/spmmrun/spmm/backend/all"
	"github.com/spmmrun/spmm/conformance"
)

func ExampleRun() {
	ctx := context.Background()
	driver, err := backend.Find("cpu")
	if err != nil {
		panic(err)
	}
	infos, err := driver.Devices(ctx)
	if err != nil {
		panic(err)
	}
	dev, err := driver.Open(ctx, infos[0])
	if err != nil {
		panic(err)
	}
	defer dev.Close()
	m, err := conformance.Run(ctx, dev, conformance.Options{Filter: regexp.MustCompile(`^csr/f32/T1.*/m5k3n9/empty$`)})
	if err != nil {
		panic(err)
	}
	for _, c := range m.Cases {
		fmt.Println(c.ID, c.Variant, c.Status)
	}
	var v conformance.Verifier
	fmt.Println(v.Verify(m).Right, "outputs equal those that the CPU computes by definition")
	// Output:
	// csr/f32/T1±/m5k3n9/empty cpu_f32 pass
	// 1 outputs equal those that the CPU computes by definition
}
