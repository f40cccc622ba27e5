package all

import _ "github.com/spmmrun/spmm/portable/webgpu"
