// The backend cuda; a stub that says how to build it in where the build tag cuda is not set.

package all

import _ "github.com/spmmrun/spmm/backend/cuda"
