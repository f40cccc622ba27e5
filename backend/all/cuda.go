package all

import _ "github.com/spmmrun/spmm/backend/cuda" // NVIDIA GPUs (a stub without the build tag cuda)
