// The backend webgpu; a stub without cgo.

package all

import _ "github.com/spmmrun/spmm/portable/webgpu"
