// The backend cpu, which is always there.

package all

import _ "github.com/spmmrun/spmm/portable/cpu"
